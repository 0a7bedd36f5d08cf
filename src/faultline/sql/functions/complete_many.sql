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

  with held as materialized (
    select job.id, done.result
    from unnest(complete_many.ids, complete_many.tokens, complete_many.claims, complete_many.results)
      as done (id, token, claim, result)
    join faultline.active as job on job.id = done.id and job.token = done.token and job.claim = done.claim
    order by job.id
    for no key update of job skip locked
  ),
  gone as (
    delete from faultline.active as job
    using held
    where job.id = held.id
    returning job.id, job.token, job.created_at, job.claimed_at, job.claim, job.lane, job.claimed_by, job.attempt,
              job.max_attempts, job.crashes, job.task, job.key, job.args, held.result
  ),
  kept as (
    insert into faultline.ledger (
      job_id, slot, token, created_at, claimed_at, settled_at, claim, lane, worker, attempt,
      max_attempts, crashes, outcome, task, key, args, result)
    select gone.id, 0, gone.token, gone.created_at, gone.claimed_at, moment, gone.claim, gone.lane, gone.claimed_by,
           gone.attempt, gone.max_attempts, gone.crashes, 'succeeded', gone.task, gone.key,
           case when gone.lane <> all (outlined) then gone.args end,
           case when gone.lane <> all (outlined) then gone.result::faultline.document end
    from gone
    where gone.lane <> all (silent)
  ),
  lapsed as (
    update faultline.keys as named
    set until = moment + named.keep_for
    from gone
    join faultline.lanes as lane on lane.id = gone.lane
    where gone.key is not null
      and named.scope = lane.queue and named.key = gone.key and named.job_id = gone.id
  )
  select array_agg(gone.id), array_agg(gone.claim) into through_ids, through_claims from gone;

  if cardinality(ids) > coalesce(cardinality(through_ids), 0) then
    return query select * from faultline.answer_the_rest(
      complete_many.ids, complete_many.tokens, complete_many.claims, through_ids, through_claims,
      complete_many.worker, moment);
  end if;
end;
$$;
