-- One job as it is now; no row when there is none.
-- Unlike in a list, `damage` covers documents of any length: one that is stored and could not be read is damage. With `confirmed`, the
-- end of a job is durable before it is returned, as if it were written now: for a client that waits for the end.
create function faultline.get_job(job_id bigint, confirmed boolean default false)
returns setof faultline.jobs
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  job     faultline.jobs;
  unread  text;
begin
  for job in select * from faultline.jobs as known where known.id = get_job.job_id loop
    if job.damage is null and (job.args is null or job.result is null) then
      select nullif(concat_ws('; ',
        case when job.args is null and kept.args then 'its args are no JSON document' end,
        case when job.result is null and kept.result then 'its result is no JSON document' end), '')
      into unread
      from (
        select row.args is not null as args, false as result from faultline.active as row where row.id = get_job.job_id
        union all
        select row.args is not null, false from faultline.later as row where row.id = get_job.job_id
        union all
        select row.args is not null, false from faultline.dead as row where row.id = get_job.job_id
        union all
        select row.args is not null, row.result is not null
        from faultline.ledger as row
        where row.job_id = get_job.job_id and row.slot = 0
      ) as kept
      limit 1;
      job.damage := unread;
    end if;
    if get_job.confirmed and job.state in ('succeeded', 'dead', 'cancelled') then
      perform faultline.read_durably();
    end if;
    return next job;
  end loop;
end;
$$;
