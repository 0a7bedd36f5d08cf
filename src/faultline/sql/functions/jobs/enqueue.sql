-- (nothing) -> queued: put a job in its queue, now or for later; with a key, once.
--
--   select faultline.enqueue('send_receipt', '{"order": 17}');
--   select faultline.enqueue('send_receipt', '{"order": 17}', queue => 'mail', delay => '5 minutes', key => 'order-17');
--   select faultline.enqueue('sync', '{"tenant": 7}', key => 'tenant-7', key_rule => 'while_queued');
create function faultline.enqueue(
  task          faultline.task_name,
  args          faultline.document default '{}',
  queue         faultline.queue_name default 'default',
  priority      faultline.rank default 0,
  run_at        faultline.moment default null,
  delay         faultline.wait default null,
  max_attempts  faultline.attempt_budget default 10,
  lease_for     faultline.lease_time default null,
  timeout       faultline.run_time default null,
  retry         faultline.document default null,
  key           faultline.key_name default null,
  key_for       interval default interval '1 day',
  trace         faultline.trace_context default null,
  key_rule      text default null,
  expires_at    faultline.moment default null,
  expires_in    faultline.wait default null,
  limit_name    text default null,   -- a limit in place of the task's own
  limit_key     text default null)   -- the key by which the limit counts, in place of the one in the args
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  place     bigint;
  line      int;
  closed    boolean;
  key_seed  bytea;
  is_plain  boolean := key is null and run_at is null and delay is null and key_rule is null and expires_at is null
                       and expires_in is null and limit_name is null and limit_key is null;
begin
  if is_plain and faultline.uses_limits() then
    is_plain := not exists (select from faultline.task_limits as tied where tied.task = enqueue.task);
  end if;
  if not is_plain then
    return (array(select made.id from faultline.enqueue_many(
      task => enqueue.task, args => array[faultline.text_of(enqueue.args)], queue => enqueue.queue, priority => enqueue.priority,
      run_at => enqueue.run_at, delay => enqueue.delay, max_attempts => enqueue.max_attempts,
      lease_for => enqueue.lease_for, timeout => enqueue.timeout, retry => enqueue.retry,
      keys => case when enqueue.key is not null then array[enqueue.key::text] end, key_for => enqueue.key_for,
      trace => enqueue.trace, key_rule => enqueue.key_rule, expires_at => enqueue.expires_at, expires_in => enqueue.expires_in,
      limit_name => enqueue.limit_name,
      limit_keys => case when enqueue.limit_key is not null then array[enqueue.limit_key] end) as made))[1];
  end if;

  perform faultline.text_of(enqueue.retry)::faultline.retry_text where enqueue.retry is not null;

  -- Most calls enqueue one job for now. This path does the same as enqueue_many with fewer steps.
  perform faultline.be_durable();
  select lane.id, lane.is_full into line, closed
  from faultline.lanes as lane
  where lane.queue = enqueue.queue and lane.priority = enqueue.priority;
  if closed then
    perform faultline.refuse_full(enqueue.queue);
  end if;

  perform faultline.check_server();
  place := nextval('faultline.places');
  key_seed := faultline.new_key_seed();
  insert into faultline.active (id, pos, created_at, lane, args, new_columns)
  values (place, place, faultline.now(), coalesce(line, faultline.lane_of(enqueue.queue, enqueue.priority)),
          faultline.text_of(enqueue.args), new_columns);
  return place;
end;
$$;
