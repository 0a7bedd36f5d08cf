-- running -> queued | dead: the retry-or-dead path, one for reported failures and for crashes. The rows are locked by the caller.
create function faultline.put_back(
  ids          bigint[],
  ending       faultline.lease_end,
  error        text,
  moment       timestamptz,
  delay        interval default null,
  crashed      boolean default false,
  dead_reason  text default null,
  errors       text[] default null,       -- where each has its own: in the order of the ids
  delays       interval[] default null,
  alone        boolean default false)     -- it crashed in a process of its own
returns table (id bigint, token bigint, worker int, task text, queue text, died boolean)
language plpgsql
volatile
as $$
#variable_conflict use_column
begin
  return query
  with ended as (
    delete from faultline.active as job
    where job.id = any (put_back.ids)
    returning job.*
  ),
  judged as materialized (
    select ended.*, lane.queue,
           left(coalesce(put_back.errors[array_position(put_back.ids, ended.id)], put_back.error), 8192) as said,
           coalesce(put_back.delays[array_position(put_back.ids, ended.id)], put_back.delay) as wait,
           ended.crashes + put_back.crashed::int as crashed_times,
           case when put_back.alone then coalesce(ended.crashes_alone, 0) + 1 else ended.crashes_alone end as alone_times,
           coalesce(put_back.dead_reason, case when ended.attempt >= ended.max_attempts then 'out of attempts' end) as dies_of
    from ended
    left join faultline.lanes as lane on lane.id = ended.lane
  ),
  again as (
    insert into faultline.later (
      id, run_at, token, created_at, lane, attempt, max_attempts, crashes, task, key, lease_for, timeout, retry, error, args,
      crashes_alone, trace, key_seed)
    select judged.id,
           -- Not coalesce: greatest() looks past a null, so no delay would come out as a delay of nothing.
           moment + case when judged.wait is null then faultline.crash_delay(judged.crashed_times)
                         else least(greatest(judged.wait, interval '0'), interval '30 days') end,
           judged.token, judged.created_at, judged.lane, judged.attempt, judged.max_attempts, judged.crashed_times,
           judged.task, judged.key, judged.lease_for, judged.timeout, judged.retry, judged.said, judged.args,
           judged.alone_times, judged.trace, judged.key_seed
    from judged
    where judged.dies_of is null
  ),
  buried as (
    insert into faultline.dead (
      id, died_at, token, created_at, lane, attempt, max_attempts, crashes, task, key, lease_for, timeout, retry,
      reason, error, args, crashes_alone, trace, key_seed)
    select judged.id, moment, judged.token, judged.created_at, judged.lane, judged.attempt, judged.max_attempts,
           judged.crashed_times, judged.task, judged.key, judged.lease_for, judged.timeout, judged.retry,
           left(judged.dies_of, 8192), judged.said, judged.args, judged.alone_times, judged.trace,
           judged.key_seed
    from judged
    where judged.dies_of is not null
  ),
  lapsed as (
    update faultline.keys as named
    set until = moment + named.keep_for
    from judged
    where judged.key is not null and judged.dies_of is not null
      and named.scope = judged.queue and named.key = judged.key and named.job_id = judged.id
  ),
  entered as (
    insert into faultline.ledger (
      job_id, slot, token, created_at, claimed_at, settled_at, claim, lane, worker, attempt,
      max_attempts, crashes, outcome, task, key, error)
    select judged.id, judged.token, judged.token, judged.created_at, judged.claimed_at, moment, judged.claim, judged.lane,
           judged.claimed_by, judged.attempt, judged.max_attempts, judged.crashed_times,
           case when judged.dies_of is null then put_back.ending else 'dead' end,
           judged.task, judged.key, judged.said
    from judged
  )
  select judged.id, judged.token, judged.claimed_by, judged.task::text, judged.queue::text, judged.dies_of is not null
  from judged;
end;
$$;
