-- (nothing) -> queued: put jobs of any tasks and queues in their queues; a job that cannot go with the others is left out.
--
-- `kinds` holds the options that jobs share, as objects; `kind_of` gives the kind of each job, counted from 1. The rows are in the
-- order of the args: `made`; `found`, an older job of the same key and request; and, without an id, `conflict`, the key names
-- another request, or a job of the same call is to be replaced, and `new_lane`, no job had this queue and priority yet, or the queue
-- is full. A lane is not created here, because that may wait for another transaction, and all jobs of the call would wait.
create function faultline.enqueue_each(
  kinds    jsonb,
  kind_of  bigint[],
  args     text[],
  traces   text[] default null,
  keys     text[] default null,
  limit_keys text[] default null)
returns table (id bigint, state text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment    timestamptz := faultline.now();
  key_seed  bytea := faultline.new_key_seed();   -- the same for all jobs: their ids differ
  patience  text := current_setting('lock_timeout');
  answered  bigint;
begin
  if cardinality(kind_of) <> cardinality(args) or cardinality(traces) <> cardinality(args)
     or cardinality(keys) <> cardinality(args) then
    raise exception 'got % kinds, % traces and % keys for % jobs',
        cardinality(kind_of), cardinality(traces), cardinality(keys), cardinality(args)
      using errcode = 'LS005', hint = 'Give one of each a job.';
  end if;
  perform faultline.be_durable();
  perform faultline.check_server();

  -- Another transaction may hold a key and stay open: the wait for it has a limit, after which nothing is written.
  -- A lower limit of the caller stays.
  if keys is not null and patience::interval not between interval '1 ms' and interval '100 ms' then
    perform set_config('lock_timeout', '100ms', true);
  end if;

  if faultline.uses_limits() and faultline.has_limited_kind(enqueue_each.kinds) then
    return query select * from faultline.enqueue_each_limited(kinds, kind_of, args, traces, keys, limit_keys);
    if keys is not null then
      perform set_config('lock_timeout', patience, true);
    end if;
    return;
  elsif cardinality(array_remove(limit_keys, null)) > 0 then
    raise exception 'no task of these jobs has a limit, so a limit_key means nothing'
      using errcode = 'LS005', hint = 'Name the limit too, as limit_name. Nothing was enqueued.';
  end if;

  return query
  with kind as materialized (
    select named.number, named.task, named.queue, named.max_attempts, named.lease_for, named.timeout,
      named.retry::faultline.retry_text::jsonb as retry, coalesce(named.key_for, interval '1 day') as key_for, named.key_rule,
      coalesce(named.run_at, moment + named.delay)::faultline.moment as due_at,
      case when named.expires_at is not null or named.expires_in is not null then faultline.checked_expiry(
        coalesce(named.expires_at, moment + named.expires_in), coalesce(named.run_at, moment + named.delay), moment)
      end::faultline.moment as expires_at,
      (select lane.id from faultline.lanes as lane
       where not lane.is_full and lane.queue = named.queue and lane.priority = coalesce(named.priority, 0)) as lane
    from rows from (jsonb_to_recordset(kinds) as (
      task faultline.task_name, queue faultline.queue_name, priority faultline.rank, run_at faultline.moment,
      delay faultline.wait, max_attempts faultline.attempt_budget, lease_for faultline.lease_time,
      timeout faultline.run_time, retry text, key_for interval, key_rule text,
      expires_at faultline.moment, expires_in faultline.wait))
      with ordinality as named
        (task, queue, priority, run_at, delay, max_attempts, lease_for, timeout, retry, key_for, key_rule, expires_at, expires_in, number)
  ),
  asked as materialized (
    select job.place, job.args::faultline.document_text as args, job.trace::faultline.trace_context as trace,
      case when kind.key_rule = 'per_period' then faultline.key_in_period(job.key, kind.key_for, moment) else job.key end as key,
      kind.task, kind.queue, kind.max_attempts, kind.lease_for, kind.timeout, kind.retry, kind.key_for, kind.key_rule, kind.due_at, kind.expires_at,
      kind.lane, case when kind.lane is not null then nextval('faultline.places') end as id
    from unnest(args, kind_of, traces, keys) with ordinality as job (args, kind, trace, key, place)
    join kind on kind.number = job.kind
  ),
  owned as materialized (
    select job.*,
      case when job.id is null then null
           when job.key_rule is not null then faultline.take_key_by_rule(
             job.key_rule, job.queue, job.key, job.id, job.task, job.args, job.due_at, job.key_for, moment,
             (select array_agg(sibling.id) from asked as sibling))
           when job.key is null then job.id
           else faultline.take_key_unless_other(
             job.queue, job.key, job.id, sha256(convert_to(job.task || E'\n' || job.args::jsonb::text, 'UTF8')),
             job.key_for, moment) end as owner
    -- In the order of the keys, so that two batches of the same keys wait for each other and do not deadlock.
    from (select asked.* from asked order by asked.key, asked.queue, asked.place) as job
  ),
  due as (
    insert into faultline.active (id, pos, created_at, lane, key, args, new_columns)
    select owned.id, owned.id, moment, owned.lane, owned.key, owned.args, owned.max_attempts, owned.task,
      owned.lease_for, owned.timeout, owned.retry, owned.trace, key_seed, owned.expires_at
    from owned
    where owned.owner = owned.id and (owned.due_at is null or owned.due_at <= moment)
  ),
  put_off as (
    insert into faultline.later (id, run_at, created_at, lane, key, args, new_columns)
    select owned.id, owned.due_at, moment, owned.lane, owned.key, owned.args, owned.max_attempts, owned.task,
      owned.lease_for, owned.timeout, owned.retry, owned.trace, key_seed, owned.expires_at
    from owned
    where owned.owner = owned.id and owned.due_at > moment
  )
  select owned.owner, case when owned.lane is null then 'new_lane' when owned.owner is null then 'conflict'
                           when owned.owner = owned.id then 'made' else 'found' end
  from owned
  order by owned.place;

  -- A job of a kind that is not there would be left out of the answer, and the rows behind it told of the wrong jobs.
  get diagnostics answered = row_count;
  if answered is distinct from cardinality(args) then
    raise exception 'of % jobs % have a kind among the % given', cardinality(args), answered, jsonb_array_length(kinds)
      using errcode = 'LS005', hint = 'Give each job the number of its kind, counted from 1. Nothing was enqueued.';
  end if;

  if keys is not null then
    perform set_config('lock_timeout', patience, true);
  end if;
end;
$$;
