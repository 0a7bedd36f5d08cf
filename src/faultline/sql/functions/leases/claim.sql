-- queued -> running: take due jobs, each under a new lease; no other statement grants a lease.
-- The rows have no order. The caller sorts them by `priority`, then by `pos`: sorting here made a job cost a sixth more.
create function faultline.claim(
  queues   text[],
  max_jobs int,
  lease    faultline.lease_time,
  claim    uuid,
  worker   int default null,
  timeout  faultline.run_time default interval '1 hour',
  resend   boolean default false,
  lanes    bigint[] default null,    -- lanes of which the caller knows a later start than the floor, 0 for all: a hint;
  positions bigint[] default null,   -- the caller has to scan from the floor often enough
  trace    faultline.trace_context default null,
  bytes    int default 16777216,     -- of all arguments together; the first job is taken at any size
  except_tasks text[] default null,  -- left for other workers, besides the tasks that the worker has not named by know_tasks
  freed    bigint[] default null)    -- gates at which the caller freed slots: looked at first
returns table (
  id bigint, token bigint, attempt smallint, max_attempts smallint, crashes smallint, task text, queue text,
  args text, key text, created_at timestamptz, lease_for interval, timeout_after interval, retry text,
  lane int, pos bigint, traced text, due_at timestamptz, claimed_at timestamptz, priority smallint,
  key_seed bytea, gate bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  known   jsonb;
  moment  timestamptz := faultline.now();
  picked  tid[];
  lines   int[];
  names   text[];
  ranks   smallint[];
  high    int[];
  tops    bigint[];
  number  bigint;
  weights int[];
  together bigint;
begin
  perform faultline.be_durable();
  if coalesce(max_jobs, 0) not between 1 and 1000 then
    raise exception 'max_jobs is %, a claim takes from 1 to 1000 jobs', max_jobs using errcode = 'LS005';
  end if;

  -- Without this check a missing lease would last as long as the timeout: least() ignores a null.
  if claim.claim is null or claim.lease is null or claim.timeout is null then
    raise exception 'a claim names its claim id, its lease and its timeout; one of them is null'
      using errcode = 'LS005', hint = 'Make a random uuid for each claim, and give a lease such as 15 seconds.';
  end if;

  if resend then
    return query select * from faultline.claimed_again(claim.claim, claim.bytes);
    return;
  end if;

  -- As keys of an object: an array would be compared one by one, with each job. The `||` takes a long value out of its row once.
  select listed.names || '{}' into known
  from faultline.known_tasks as listed
  where listed.worker = claim.worker;

  if faultline.uses_limits() then
    perform faultline.admit(claim.queues, claim.max_jobs, known, claim.except_tasks, claim.freed)
    where exists (select from faultline.limited_lanes as limited where limited.queue = any (claim.queues));
  end if;

  -- Materialised in an array before the UPDATE: with any plan, never more rows than asked for.
  select array_agg(job.place), array_agg(job.lane),
         array_agg(job.lane) filter (where job.higher), array_agg(job.pos) filter (where job.higher),
         array_agg(job.weight), sum(job.weight)
  into picked, lines, high, tops, weights, together
  from (
    select free.place, lane.id as lane, free.pos, free.pos > lane.top as higher, free.weight
    from (
      select lane.id, greatest(lane.floor, claim.positions[array_position(claim.lanes, lane.id::bigint)],
                                claim.positions[array_position(claim.lanes, 0)]) as floor, lane.top
      from faultline.lanes as lane
      where lane.queue = any (claim.queues) and not lane.paused
      order by case when lane.age_after is null then lane.priority
                    else lane.priority - coalesce(faultline.aged(lane.id, lane.floor, lane.age_after, moment), 0) end, random()
    ) as lane
    cross join lateral (
      select job.ctid as place, job.pos, 
             octet_length(job.args) + coalesce(octet_length(job.retry::text), 0) as weight   -- of args read from the header, also in TOAST
      from faultline.active as job
      where job.lane = lane.id
        and job.pos >= lane.floor
        and job.claim is null
        and (known is null or known ? job.task)
        and (claim.except_tasks is null or job.task <> all (claim.except_tasks))
        and (job.expires_at is null or job.expires_at > moment)
        and job.token < 2305843009213693952   -- a token beyond 2^61 is damage: quarantine buries the job, its neighbours run
      order by job.pos
      limit claim.max_jobs
      for no key update skip locked
    ) as free
    limit claim.max_jobs
  ) as job;

  if picked is null then
    return;
  end if;

  -- A job that does not fit stays free: it is locked until this commits, and not taken.
  if together > claim.bytes then
    picked := picked[1:faultline.within(weights, claim.bytes)];
  end if;

  select array_agg(lane.id), array_agg(lane.queue), array_agg(lane.priority) into lines, names, ranks
  from faultline.lanes as lane
  where lane.id = any (lines);

  -- The number is drawn after the rows are locked, so a claim that locks later draws a higher one.
  number := faultline.epoch() + nextval('faultline.tokens');
  moment := faultline.now();

  -- By ctid, which cannot change while we hold the row locks. Where vacuum has counted few live rows on many pages, a search by
  -- id, or a join to the lanes in the UPDATE itself, reads the whole index.
  return query
  update faultline.active as job
  set token       = greatest(number, job.token + 1),
      claim       = claim.claim,
      claimed_at  = moment,
      claimed_by  = claim.worker,
      deadline_at = moment + coalesce(job.timeout, claim.timeout),
      lease_until = moment + least(coalesce(job.lease_for, claim.lease), coalesce(job.timeout, claim.timeout)),
      attempt     = job.attempt + 1,
      -- The last claim's context moves to the second line, so that an attempt can name the one before it, even after a crash.
      trace       = case when claim.trace is null then job.trace else
        concat(split_part(job.trace, E'\n', 1), E'\n', split_part(job.trace, E'\n', 3), E'\n', claim.trace) end
  where job.ctid = any (picked)
    and (job.expires_at is null or job.expires_at > moment)   -- once more, at the moment of the claim
  returning job.id, job.token, job.attempt, job.max_attempts, job.crashes, job.task::text,
            names[array_position(lines, job.lane)], job.args::text, job.key::text, job.created_at, job.lease_for::interval,
            job.timeout::interval, job.retry::text, job.lane, job.pos, job.trace, coalesce(job.due_at, job.created_at),
            job.claimed_at, ranks[array_position(lines, job.lane)], job.key_seed, job.gate;

  if high is not null then
    perform faultline.raise_top(high, tops);
  end if;
end;
$$;
