-- Find the free job that a key names, or give the key to a new job; returns the id of the job that the key names now, or null where
-- it names a job of another task, or the rule replaces a job of the same call.
--
-- The free job stays locked until the caller's commit, and claims skip it: its handler sees the caller's rows. A job that another
-- transaction holds counts as not free: better a job too many than a producer whose rows no run sees.
-- These keys have a scope of their own. No verb of a worker looks at their rows, so none waits for a producer.
create function faultline.take_queued(
  rule text, scope text, key faultline.key_name, job_id bigint, request bytea, args text, due_at timestamptz,
  longest interval, moment timestamptz, siblings bigint[], limit_id int, gate bigint)
returns bigint
language plpgsql
volatile
as $$
declare
  shelf  text := take_queued.scope || '/queued';   -- no queue has a name with a slash
  held   faultline.keys;
begin
  loop
    -- `until` says when prune looks whether the job still waits: nothing else reads it here.
    insert into faultline.keys (scope, key, job_id, request, keep_for, until)
    values (shelf, take_queued.key, take_queued.job_id, take_queued.request, interval '0', moment + interval '1 hour')
    on conflict do nothing;
    if found then
      return take_queued.job_id;
    end if;

    -- A new statement sees the winner of the race. Producers of one key wait for each other here, until the other's commit.
    select * into held
    from faultline.keys as named
    where named.scope = shelf and named.key = take_queued.key
    for no key update;
    continue when not found;

    if held.request <> take_queued.request then
      return null;
    end if;
    if held.job_id = any (siblings) then   -- a job of the same call, which is not written yet
      return case when rule = 'while_queued' then held.job_id end;
    end if;

    if rule = 'while_queued' then
      perform from faultline.active as job
      where job.id = held.job_id and job.claim is null
        and (job.expires_at is null or job.expires_at > moment)
      for share skip locked;
      if found then
        return held.job_id;
      end if;
      perform from faultline.later as job
      where job.id = held.job_id
        and (job.expires_at is null or job.expires_at > moment)
      for share skip locked;
      if found then
        return held.job_id;
      end if;
    elsif faultline.replace_args(
      held.job_id, take_queued.args, case when rule = 'debounce' then due_at end, longest, moment, take_queued.limit_id, take_queued.gate)
    then
      return held.job_id;
    end if;

    update faultline.keys as named
    set job_id = take_queued.job_id, until = moment + interval '1 hour'
    where named.scope = shelf and named.key = take_queued.key;
    return take_queued.job_id;
  end loop;
end;
$$;
