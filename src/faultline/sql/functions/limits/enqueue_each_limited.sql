-- (nothing) -> queued: as enqueue_each, for a call in which some kinds have limits: their jobs go by enqueue_many, a kind at a time.
-- A kind that cannot go (a key is missing, or names another request, or its queue is full) is answered `new_lane`: its jobs go singly,
-- and each gets its own error.
create function faultline.enqueue_each_limited(
  kinds jsonb, kind_of bigint[], args text[], traces text[], keys text[], limit_keys text[])
returns table (id bigint, state text)
language plpgsql
volatile
as $$
#variable_conflict use_column
declare
  ids     bigint[] := array_fill(null::bigint, array[cardinality(args)]);
  states  text[] := array_fill('new_lane'::text, array[cardinality(args)]);
  part    record;
  done    record;
begin
  for part in
    select asked.kind, asked.trace, named.*, array_agg(asked.place) as places, array_agg(asked.args order by asked.place) as their_args,
           array_agg(asked.key order by asked.place) as their_keys, count(asked.key) > 0 as has_keys,
           array_agg(asked.limit_key order by asked.place) as their_limit_keys, count(asked.limit_key) > 0 as has_limit_keys,
           named.limit_name is not null or exists (select from faultline.task_limits as tied where tied.task = named.task) as limited
    from (
      select asked.*, row_number() over () as place
      from unnest(kind_of, args, traces, keys, limit_keys) as asked (kind, args, trace, key, limit_key)
    ) as asked
    join rows from (jsonb_to_recordset(kinds) as (
      task text, queue text, priority bigint, run_at timestamptz, delay interval, max_attempts bigint, lease_for interval,
      timeout interval, retry text, key_for interval, key_rule text, expires_at timestamptz, expires_in interval, limit_name text))
      with ordinality as named
        (task, queue, priority, run_at, delay, max_attempts, lease_for, timeout, retry, key_for, key_rule, expires_at, expires_in,
         limit_name, number)
      on named.number = asked.kind
    group by asked.kind, asked.trace, named.task, named.queue, named.priority, named.run_at, named.delay, named.max_attempts,
             named.lease_for, named.timeout, named.retry, named.key_for, named.key_rule, named.expires_at, named.expires_in,
             named.limit_name, named.number
    order by asked.kind
  loop
    begin
      if part.limited or part.has_limit_keys then
        for done in
          select row_number() over () as number, made.id, made.is_new
          from faultline.enqueue_many(
            task => part.task, args => part.their_args, queue => part.queue, priority => coalesce(part.priority, 0), run_at => part.run_at,
            delay => part.delay, max_attempts => part.max_attempts, lease_for => part.lease_for, timeout => part.timeout,
            retry => part.retry::jsonb, keys => case when part.has_keys then part.their_keys end,
            key_for => coalesce(part.key_for, interval '1 day'), trace => part.trace, key_rule => part.key_rule,
            expires_at => part.expires_at, expires_in => part.expires_in, limit_name => part.limit_name,
            limit_keys => case when part.has_limit_keys then part.their_limit_keys end) as made
        loop
          ids[part.places[done.number]] := done.id;
          states[part.places[done.number]] := case when done.is_new then 'made' else 'found' end;
        end loop;
      else
        for done in
          select row_number() over () as number, made.id, made.state
          from faultline.enqueue_each(
            jsonb_build_array(kinds -> (part.kind - 1)::int), array_fill(1::bigint, array[cardinality(part.places)]), part.their_args,
            array_fill(part.trace, array[cardinality(part.places)]), case when part.has_keys then part.their_keys end) as made
        loop
          ids[part.places[done.number]] := done.id;
          states[part.places[done.number]] := done.state;
        end loop;
      end if;
    exception when sqlstate 'LS002' or sqlstate 'LS005' or sqlstate 'LS007' then
      null;   -- nothing of this kind was written
    end;
  end loop;
  return query select made.id, made.state from unnest(ids, states) as made (id, state);
end;
$$;
