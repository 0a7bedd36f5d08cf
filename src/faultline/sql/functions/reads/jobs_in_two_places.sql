-- How many jobs are in more than one of `active`, `later`, `dead` and the ledger's ends; 0 unless rows were changed by hand.
create function faultline.jobs_in_two_places()
returns bigint
language sql
volatile
as $$
  with standing as (
    select job.id from faultline.active as job
    union all
    select job.id from faultline.later as job
    union all
    select job.id from faultline.dead as job
  ),
  doubled as (
    select standing.id from standing group by standing.id having count(*) > 1
    union
    select standing.id from standing join faultline.ledger as entry on entry.job_id = standing.id and entry.slot = 0
  )
  select count(*) from doubled
$$;
