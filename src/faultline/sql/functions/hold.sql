-- Lock a job wherever it stands, and say where; LS003 when it is nowhere.
-- It may move while we wait for its lock (promoted, reaped): then look again, until we hold it or a fresh look finds nothing.
create function faultline.hold(job_id bigint)
returns text
language plpgsql
volatile
as $$
declare
  place text;
begin
  loop
    place := faultline.where_is(hold.job_id);
    case place
      when 'active' then perform from faultline.active as job where job.id = hold.job_id for update;
      when 'later'  then perform from faultline.later as job where job.id = hold.job_id for update;
      when 'dead'   then perform from faultline.dead as job where job.id = hold.job_id for update;
      when 'ended'  then return place;
      else
        raise exception 'there is no job %', hold.job_id
          using errcode = 'LS003',
                hint = 'Check the id. A finished job is forgotten after the ledger''s retention, or at once in a queue that keeps nothing; a failover may have lost it.';
    end case;
    if found then
      return place;
    end if;
  end loop;
end;
$$;
