-- Why a lease may not write: a newer token exists, the lease has ended, the job was cancelled, or no row knows the lease.
create function faultline.why_refused(job_id bigint, token bigint)
returns table (reason text, current_token bigint)
language plpgsql
volatile
as $$
#variable_conflict use_column
declare
  highest    bigint;
  cancelled  boolean;
  ended      boolean;
begin
  select max(trace.token) into highest
  from (
    select job.token from faultline.active as job where job.id = why_refused.job_id
    union all
    select job.token from faultline.later as job where job.id = why_refused.job_id
    union all
    select job.token from faultline.dead as job where job.id = why_refused.job_id
    union all
    select entry.token from faultline.ledger as entry where entry.job_id = why_refused.job_id
  ) as trace;

  select bool_or(entry.outcome = 'cancelled'), bool_or(entry.token = why_refused.token)
  into cancelled, ended
  from faultline.ledger as entry
  where entry.job_id = why_refused.job_id;

  return query select
    case
      when highest > why_refused.token then 'token_mismatch'
      when cancelled then 'cancelled'
      when ended then 'settled'
      else 'gone'
    end,
    highest;
end;
$$;
