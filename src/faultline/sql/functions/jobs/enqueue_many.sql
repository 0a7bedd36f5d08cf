-- (nothing) -> queued: put many jobs of one task in one queue; the ids come back in the order of the args.
create function faultline.enqueue_many(
  task          faultline.task_name,
  args          text[],
  queue         faultline.queue_name default 'default',
  priority      faultline.rank default 0,
  run_at        faultline.moment default null,
  delay         faultline.wait default null,
  max_attempts  faultline.attempt_budget default 10,
  lease_for     faultline.lease_time default null,
  timeout       faultline.run_time default null,
  retry         faultline.document default null,
  keys          text[] default null,
  key_for       interval default interval '1 day',
  trace         faultline.trace_context default null,   -- the same for all jobs
  key_rule      text default null,
  expires_at    faultline.moment default null,          -- without a claim by then it ends as cancelled
  expires_in    faultline.wait default null,
  limit_name    text default null,                      -- a limit in place of the task's own
  limit_keys    text[] default null)                    -- the keys by which the limit counts, in place of those in the args
returns table (id bigint, is_new boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment    timestamptz := faultline.now();
  due_at    faultline.moment := coalesce(enqueue_many.run_at, moment + enqueue_many.delay);
  lane      int;
  closed    boolean;
  limited   faultline.task_limits;
  gates     bigint[];
  key_seed  bytea := faultline.new_key_seed();   -- the same for all jobs: their ids differ
begin
  perform faultline.be_durable();
  perform faultline.check_server();
  if expires_at is not null or expires_in is not null then
    expires_at := faultline.checked_expiry(coalesce(expires_at, moment + expires_in), due_at, moment);
  end if;
  select known.id, known.is_full into lane, closed
  from faultline.lanes as known
  where known.queue = enqueue_many.queue and known.priority = enqueue_many.priority;
  lane := coalesce(lane, faultline.lane_of(enqueue_many.queue, enqueue_many.priority));
  perform faultline.text_of(enqueue_many.retry)::faultline.retry_text where enqueue_many.retry is not null;
  if faultline.uses_limits() or limit_name is not null then
    limited := faultline.limit_of(enqueue_many.task, enqueue_many.limit_name);
  end if;
  if limited.limit_id is not null then
    perform faultline.list_lane(limited.limit_id, lane);
    gates := faultline.gates_of(limited, enqueue_many.limit_keys, enqueue_many.args);
  elsif enqueue_many.limit_keys is not null then
    raise exception 'task % has no limit, so a limit_key means nothing', enqueue_many.task
      using errcode = 'LS005', hint = 'Name the limit too, as limit_name. Nothing was enqueued.';
  end if;
  if keys is not null or key_rule is not null or gates is not null then
    return query select made.id, made.is_new from faultline.enqueue_keyed(
      enqueue_many.task, enqueue_many.args, enqueue_many.queue, lane, due_at, moment, enqueue_many.max_attempts,
      enqueue_many.lease_for, enqueue_many.timeout, enqueue_many.retry, enqueue_many.keys, enqueue_many.key_for,
      enqueue_many.trace, enqueue_many.key_rule, enqueue_many.expires_at, closed, limited.limit_id, gates) as made;
  elsif closed then
    perform faultline.refuse_full(enqueue_many.queue);
  elsif due_at is null or due_at <= moment then
    return query
    insert into faultline.active (id, pos, created_at, lane, args, new_columns)
    select numbered.id, numbered.id, moment, lane, numbered.args::faultline.document_text, new_columns
    from (select nextval('faultline.places') as id, asked.args from unnest(enqueue_many.args) as asked (args)) as numbered
    returning id, true;
  else
    return query
    insert into faultline.later (id, run_at, created_at, lane, args, new_columns)
    select nextval('faultline.places'), due_at, moment, lane, asked.args::faultline.document_text, new_columns
    from unnest(enqueue_many.args) as asked (args)
    returning id, true;
  end if;
end;
$$;
