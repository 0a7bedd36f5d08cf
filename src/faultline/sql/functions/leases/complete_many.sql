-- running -> succeeded, many at once: returns only the jobs that were not settled.
-- A refused job is recorded here. A busy job (another session holds its row lock) has to be repeated singly.
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
  places          tid[];
  their_results   text[];
  has_results     boolean := cardinality(array_remove(results, null)) > 0;   -- most handlers return nothing
  nothing         faultline.document_text;   -- a typed null: a cast of a plain null would run the checks for each job
  keys            text[];
  keyed           bigint[];
  deleted         int;
begin
  perform faultline.be_durable();

  -- One read for all jobs: a join of each job to its lane cost a quarter of the whole completion.
  select coalesce(array_agg(lane.id) filter (where lane.keep = 'nothing'), '{}'),
         coalesce(array_agg(lane.id) filter (where lane.keep = 'outline'), '{}')
  into silent, outlined
  from faultline.lanes as lane
  where lane.keep <> 'full';

  -- A subquery for each job, then a delete by ctid, which cannot change while we hold the row locks. For a join, the planner may
  -- read a whole index if its statistics are wrong. The locks do not wait, so their order is free.
  -- One statement locks and the next deletes: a heartbeat that commits after the first began makes a new version of the row.
  -- The first statement locks that version, but could not see it to delete it.
  select array_agg(done.id), array_agg(done.claim), array_agg(job.place), array_agg(done.result),
         array_agg(job.key) filter (where job.key is not null), array_agg(done.id) filter (where job.key is not null)
  into through_ids, through_claims, places, their_results, keys, keyed
  from unnest(complete_many.ids, complete_many.tokens, complete_many.claims, complete_many.results)
    as done (id, token, claim, result)
  cross join lateral (
    select job.ctid as place, job.key
    from faultline.active as job
    where job.id = done.id and job.token = done.token and job.claim = done.claim
    for no key update skip locked
  ) as job;

  with gone as (
    delete from faultline.active as job
    where job.ctid = any (places)
    returning job.id, job.token, job.created_at, job.claimed_at, job.claim, job.lane, job.claimed_by, job.attempt,
              job.max_attempts, job.crashes, job.task, job.key, job.args
  ),
  kept as (
    insert into faultline.ledger (
      job_id, slot, token, created_at, claimed_at, settled_at, claim, lane, worker, attempt,
      max_attempts, crashes, outcome, task, key, args, result)
    select gone.id, 0, gone.token, gone.created_at, gone.claimed_at, moment, gone.claim, gone.lane, gone.claimed_by,
           gone.attempt, gone.max_attempts, gone.crashes, 'succeeded', gone.task, gone.key,
           case when gone.lane <> all (outlined) then gone.args else nothing end,
           case when has_results and gone.lane <> all (outlined)
                then their_results[array_position(through_ids, gone.id)]::faultline.document_text else nothing end
    from gone
    where gone.lane <> all (silent)
  )
  select count(*) into deleted from gone;

  if keys is not null then
    update faultline.keys as named
    set until = moment + named.keep_for
    where named.key = any (keys) and named.job_id = any (keyed)
      and position('/' in named.scope) = 0;   -- a key of take_queued has no window, and a producer may hold its row
  end if;

  -- A job that is named twice is settled once. A locked job that was not deleted is a bug, and must not commit.
  if deleted <> coalesce(cardinality(through_ids), 0)
     and deleted <> (select count(distinct done.id) from unnest(through_ids) as done (id)) then
    raise exception 'of % locked jobs only % were deleted', cardinality(through_ids), deleted;
  end if;

  if cardinality(ids) > coalesce(cardinality(through_ids), 0) then
    return query select * from faultline.report_unsettled(
      complete_many.ids, complete_many.tokens, complete_many.claims, through_ids, through_claims,
      complete_many.worker, moment);
  end if;
end;
$$;
