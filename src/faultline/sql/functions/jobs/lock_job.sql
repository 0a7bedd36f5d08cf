-- Lock a job in the table that holds it, and return which table that is; raises LS003 if there is no such job.
-- The job may move while we wait for its lock (promoted, reaped). Then the search starts again, until we hold the lock or find no job.
create function faultline.lock_job(job_id bigint)
returns text
language plpgsql
volatile
as $$
declare
  place text;
begin
  loop
    place := faultline.where_is(lock_job.job_id);
    case place
      when 'active' then perform from faultline.active as job where job.id = lock_job.job_id for update;
      when 'later'  then perform from faultline.later as job where job.id = lock_job.job_id for update;
      when 'dead'   then perform from faultline.dead as job where job.id = lock_job.job_id for update;
      when 'ended'  then return place;
      else
        raise exception 'there is no job %', lock_job.job_id
          using errcode = 'LS003',
                hint = 'Check the id. A finished job is forgotten after the ledger''s retention, or at once in a queue that keeps nothing; a failover may have lost it.';
    end case;
    if found then
      return place;
    end if;
  end loop;
end;
$$;
