-- running -> succeeded: settle the job for good, once.
-- As few statements as possible, and no value of a domain but where there is one: PostgreSQL makes the checks of a domain ready for
-- each statement that could need them. A handler's own transaction runs this once, with all of that cold.
create function faultline.complete(job_id bigint, token bigint, claim uuid, result jsonb default null)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  moment  timestamptz;
  done    record;
  entry   faultline.ledger;   -- for its nulls, which are of the right types
begin
  if current_setting('synchronous_commit') <> 'on' then
    perform faultline.be_durable();
  end if;

  delete from faultline.active as job
  where job.id    = complete.job_id
    and job.token = complete.token
    and job.claim = complete.claim
  returning job.created_at, job.claimed_at, job.claim, job.lane, job.claimed_by, job.attempt, job.max_attempts, job.crashes,
            job.task, job.key, job.args, (select lane.keep from faultline.lanes as lane where lane.id = job.lane) as keep
  into done;

  if not found then
    perform faultline.refuse(complete.job_id, complete.token);   -- raises LS001: lease lost
  end if;

  moment := faultline.now();
  if complete.result is not null then
    if done.keep = 'full' then
      entry.result := faultline.text_of(complete.result::faultline.document);
    else
      perform complete.result::faultline.document;   -- its bounds hold, whether it is kept or not
    end if;
  end if;

  if done.keep is distinct from 'nothing' then
    if done.keep is distinct from 'full' then
      done.args := entry.args;
    end if;
    insert into faultline.ledger (
      job_id, slot, token, created_at, claimed_at, settled_at, claim, lane, worker, attempt,
      max_attempts, crashes, outcome, task, key, args, result)
    values (
      complete.job_id, 0, complete.token, done.created_at, done.claimed_at, moment, done.claim, done.lane,
      done.claimed_by, done.attempt, done.max_attempts, done.crashes, 'succeeded', done.task, done.key,
      done.args, entry.result);
  end if;

  if done.key is not null then
    perform faultline.lapse_key(
      (select lane.queue from faultline.lanes as lane where lane.id = done.lane), done.key, complete.job_id, moment);
  end if;
end;
$$;
