-- running -> succeeded, many at once: answers only for the jobs that did not get through.
-- A refused one is recorded here and now; a busy one (its row is locked by somebody) is to be repeated singly.
create function faultline.complete_many(
  ids bigint[], tokens bigint[], claims uuid[], results text[], worker int default null)
returns table (id bigint, token bigint, answer text, reason text, current_token bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment          timestamptz := faultline.now();
  silent          int[];
  outlined        int[];
  through_ids     bigint[];
  through_claims  uuid[];
begin
  perform faultline.be_durable();

  -- Once for all of them: joined to each job, its lane cost a quarter of the whole completion.
  select coalesce(array_agg(lane.id) filter (where lane.keep = 'nothing'), '{}'),
         coalesce(array_agg(lane.id) filter (where lane.keep = 'outline'), '{}')
  into silent, outlined
  from faultline.lanes as lane
  where lane.keep <> 'full';

  -- A subquery a job, then their places on the page, which cannot change while we hold their locks: not joins, for which the
  -- planner may read a whole index, by what it was told of the table. Nobody is waited for, so the order of locks is free.
  with held as materialized (
    select job.*, done.result
    from (
      select distinct on (named.id, named.claim) named.id, named.token, named.claim, named.result   -- said twice, done once
      from unnest(complete_many.ids, complete_many.tokens, complete_many.claims, complete_many.results)
        as named (id, token, claim, result)
    ) as done
    cross join lateral (
      select job.id, job.token, job.created_at, job.claimed_at, job.claim, job.lane, job.claimed_by, job.attempt,
             job.max_attempts, job.crashes, job.task, job.key, job.args, job.ctid as place
      from faultline.active as job
      where job.id = done.id and job.token = done.token and job.claim = done.claim
      for no key update skip locked
    ) as job
  ),
  gone as (
    delete from faultline.active as job
    where job.ctid = any (array(select held.place from held))
  ),
  kept as (
    insert into faultline.ledger (
      job_id, slot, token, created_at, claimed_at, settled_at, claim, lane, worker, attempt,
      max_attempts, crashes, outcome, task, key, args, result)
    select held.id, 0, held.token, held.created_at, held.claimed_at, moment, held.claim, held.lane, held.claimed_by,
           held.attempt, held.max_attempts, held.crashes, 'succeeded', held.task, held.key,
           case when held.lane <> all (outlined) then held.args end,
           case when held.lane <> all (outlined) then held.result::faultline.document end
    from held
    where held.lane <> all (silent)
  ),
  lapsed as (
    update faultline.keys as named
    set until = moment + named.keep_for
    where named.key = any (array(select held.key from held where held.key is not null))
      and named.job_id = any (array(select held.id from held where held.key is not null))
  )
  select array_agg(held.id), array_agg(held.claim) into through_ids, through_claims from held;

  if cardinality(ids) > coalesce(cardinality(through_ids), 0) then
    return query select * from faultline.answer_the_rest(
      complete_many.ids, complete_many.tokens, complete_many.claims, through_ids, through_claims,
      complete_many.worker, moment);
  end if;
end;
$$;
