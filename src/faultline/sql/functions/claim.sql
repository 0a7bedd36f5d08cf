-- queued -> running: take due jobs, each under a new lease; the one statement that grants one.
-- They come in no order: the urgent first is by `priority`, then in their line by `pos`. Sorted here, a job cost a sixth more.
create function faultline.claim(
  queues   text[],
  room     int,
  lease    faultline.lease_time,
  claim    uuid,
  worker   int default null,
  timeout  faultline.run_time default interval '1 hour',
  again    boolean default false,
  lanes    bigint[] default null,    -- where the caller knows better than the floor where a lane begins: only a hint,
  places   bigint[] default null,    -- and its business to look from the floor often enough
  trace    faultline.trace_context default null,
  bytes    int default 16777216,     -- of arguments together; the first job is taken whatever it weighs
  except_tasks text[] default null)  -- which the caller does not know: left where they are, for others
returns table (
  id bigint, token bigint, attempt smallint, max_attempts smallint, crashes smallint, task text, queue text,
  args text, key text, created_at timestamptz, lease_for interval, timeout_after interval, retry text,
  lane int, pos bigint, traced text, due_at timestamptz, claimed_at timestamptz, priority smallint,
  key_seed bytea)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment  timestamptz;
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
  if coalesce(room, 0) not between 1 and 1000 then
    raise exception 'room is %, a claim takes from 1 to 1000 jobs', room using errcode = 'LS005';
  end if;

  -- Without this check a missing lease would last as long as the timeout: least() passes over a null.
  if claim.claim is null or claim.lease is null or claim.timeout is null then
    raise exception 'a claim names its claim id, its lease and its timeout; one of them is null'
      using errcode = 'LS005', hint = 'Make a random uuid for each claim, and give a lease such as 15 seconds.';
  end if;

  if again then
    return query select * from faultline.claimed_again(claim.claim, claim.bytes);
    return;
  end if;

  -- Materialised in an array before the UPDATE: never more rows than asked for, whatever the plan.
  select array_agg(job.place), array_agg(job.lane),
         array_agg(job.lane) filter (where job.higher), array_agg(job.pos) filter (where job.higher),
         array_agg(job.weight), sum(job.weight)
  into picked, lines, high, tops, weights, together
  from (
    select free.place, lane.id as lane, free.pos, free.pos > lane.top as higher, free.weight
    from (
      select lane.id, greatest(lane.floor, claim.places[array_position(claim.lanes, lane.id::bigint)]) as floor, lane.top
      from faultline.lanes as lane
      where lane.queue = any (claim.queues) and not lane.paused
      order by lane.priority, random()
    ) as lane
    cross join lateral (
      select job.ctid as place, job.pos, 
             octet_length(job.args) + coalesce(pg_column_size(job.retry), 0) as weight   -- by their headers, also in TOAST
      from faultline.active as job
      where job.lane = lane.id
        and job.pos >= lane.floor
        and job.claim is null
        and (claim.except_tasks is null or job.task <> all (claim.except_tasks))
        and job.token < 2305843009213693952   -- beyond 2^61 it is no token of ours: rescue buries it, its neighbours run
      order by job.pos
      limit claim.room
      for no key update skip locked
    ) as free
    limit claim.room
  ) as job;

  if picked is null then
    return;
  end if;

  -- What does not fit stays free: locked until this commits, and not taken.
  if together > claim.bytes then
    picked := picked[1:faultline.within(weights, claim.bytes)];
  end if;

  select array_agg(lane.id), array_agg(lane.queue), array_agg(lane.priority) into lines, names, ranks
  from faultline.lanes as lane
  where lane.id = any (lines);

  -- The number is drawn after the rows are locked, so whoever locks later draws higher.
  number := faultline.epoch() + nextval('faultline.tokens');
  moment := faultline.now();

  -- By their places on the page, which cannot change while we hold their locks: where vacuum has counted few live rows on many
  -- pages, a search by id, or a join to the lanes in the UPDATE itself, reads the whole index.
  return query
  update faultline.active as job
  set token       = greatest(number, job.token + 1),
      claim       = claim.claim,
      claimed_at  = moment,
      claimed_by  = claim.worker,
      deadline_at = moment + coalesce(job.timeout, claim.timeout),
      lease_until = moment + least(coalesce(job.lease_for, claim.lease), coalesce(job.timeout, claim.timeout)),
      attempt     = job.attempt + 1,
      -- The last claim becomes the one before it: so an attempt can name the one it follows, also when that one crashed.
      trace       = case when claim.trace is null then job.trace else
        concat(split_part(job.trace, E'\n', 1), E'\n', split_part(job.trace, E'\n', 3), E'\n', claim.trace) end
  where job.ctid = any (picked)
  returning job.id, job.token, job.attempt, job.max_attempts, job.crashes, job.task::text,
            names[array_position(lines, job.lane)], job.args::text, job.key::text, job.created_at, job.lease_for::interval,
            job.timeout::interval, job.retry::text, job.lane, job.pos, job.trace, coalesce(job.due_at, job.created_at),
            job.claimed_at, ranks[array_position(lines, job.lane)], job.key_seed;

  if high is not null then
    perform faultline.raise_top(high, tops);
  end if;
end;
$$;
