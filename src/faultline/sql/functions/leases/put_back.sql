-- running -> queued | dead: retry or bury jobs after a failure or a crash.
-- The caller holds the row locks.
create function faultline.put_back(
  ids          bigint[],
  ending       faultline.lease_end,
  error        text,
  moment       timestamptz,
  delay        interval default null,
  crashed      boolean default false,
  dead_reason  text default null,
  errors       text[] default null,       -- one for each job, in the order of the ids
  delays       interval[] default null,
  alone        boolean default false)     -- the job crashed in its own process
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
    insert into faultline.later (id, run_at, holds, token, attempt, crashes, crashes_alone, key, error, kept_columns)
    select judged.id,
           -- Not coalesce: greatest() ignores a null, so a missing delay would become a delay of zero. In seconds, since an interval
           -- with months and negative days is longer when it is added than when it is compared.
           moment + case when judged.wait is null then faultline.crash_delay(judged.crashed_times)
                         else make_interval(secs => least(greatest(extract(epoch from judged.wait), 0), 30 * 86400)) end,
           case when judged.limit_id is not null then faultline.holds_gate(judged.limit_id) end,
           judged.token, judged.attempt, judged.crashed_times, judged.alone_times, judged.key, judged.said, judged.kept_columns
    from judged
    where judged.dies_of is null
  ),
  buried as (
    insert into faultline.dead (
      id, died_at, token, attempt, crashes, crashes_alone, key, reason, error, kept_columns)
    select judged.id, moment, judged.token, judged.attempt, judged.crashed_times, judged.alone_times, judged.key,
           left(judged.dies_of, 8192), judged.said, judged.kept_columns
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
