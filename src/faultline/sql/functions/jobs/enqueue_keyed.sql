-- (nothing) -> queued, once per key: if a job has the key already, its id is returned and no job is made.
-- With a rule, the rule says which job counts (take_key_by_rule). With gates, each job waits at its own until its limit has room.
create function faultline.enqueue_keyed(
  task faultline.task_name, args text[], queue text, lane int, due_at timestamptz, moment timestamptz,
  max_attempts bigint, lease_for interval, timeout interval, retry jsonb, keys text[], key_for interval,
  trace text, key_rule text default null, expires_at timestamptz default null, closed boolean default false,
  limit_id int default null, gates bigint[] default null)
returns table (id bigint, is_new boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
  ask       record;
  named     text[];           -- the keys as they are kept
  before    bigint;           -- the place of the job before, in the order of the keys
  fresh     bigint[] := array_fill(null::bigint, array[cardinality(args)]);
  owner     bigint[] := array_fill(null::bigint, array[cardinality(args)]);
  key_seed  bytea := faultline.new_key_seed();   -- the same for all jobs: their ids differ
  kept      faultline.document_text[] := array_fill(null::text, array[cardinality(args)]);   -- the args, checked once
begin
  if keys is null then
    keys := array_fill(null::text, array[cardinality(args)]);
  elsif cardinality(keys) <> cardinality(args) then
    raise exception 'got % keys for % jobs', cardinality(keys), cardinality(args)
      using errcode = 'LS005', hint = 'Give one key a job, null for a job without one.';
  end if;
  named := keys;

  -- In the order of the keys, so that two batches of the same keys wait for each other and do not deadlock.
  for ask in
    -- The cast checks the document before the hash prints it.
    select asked.place, asked.key, asked.args::faultline.document_text as args
    from unnest(enqueue_keyed.keys, enqueue_keyed.args) with ordinality as asked (key, args, place)
    order by asked.key, asked.place
  loop
    kept[ask.place] := ask.args;
    fresh[ask.place] := nextval('faultline.places');
    if key_rule is null then
      owner[ask.place] := case when ask.key is null then fresh[ask.place] else faultline.take_key(
        enqueue_keyed.queue, ask.key, fresh[ask.place],
        sha256(convert_to(enqueue_keyed.task || E'\n' || ask.args::jsonb::text, 'UTF8')), enqueue_keyed.key_for, moment) end;
      continue;
    end if;

    if key_rule = 'per_period' then
      named[ask.place] := faultline.key_in_period(ask.key, enqueue_keyed.key_for, moment);
    end if;
    if key_rule in ('replace', 'debounce') and named[ask.place] = named[before] and owner[before] = any (fresh) then
      owner[ask.place] := owner[before];
      kept[array_position(fresh, owner[before])] := ask.args;   -- of several in one call, the last one stays
      gates[array_position(fresh, owner[before])] := gates[ask.place];
      continue;
    end if;
    before := ask.place;
    owner[ask.place] := faultline.take_key_by_rule(
      key_rule, enqueue_keyed.queue, named[ask.place], fresh[ask.place], enqueue_keyed.task, ask.args, due_at,
      enqueue_keyed.key_for, moment, fresh, enqueue_keyed.limit_id, gates[ask.place]);
    if owner[ask.place] is null then
      raise exception 'the key % in queue % already names a job of another task, or was given without a rule',
          quote_literal(named[ask.place]), enqueue_keyed.queue
        using errcode = 'LS002', hint = 'Put the task''s name into the key.';
    end if;
  end loop;

  if closed and exists (select from unnest(fresh, owner) as asked (id, owner) where asked.id = asked.owner) then
    perform faultline.refuse_full(enqueue_keyed.queue);   -- those that were found are no new jobs
  end if;

  with won as materialized (
    select asked.id, asked.key, asked.args, asked.gate
    from unnest(fresh, owner, named, kept, enqueue_keyed.gates) as asked (id, owner, key, args, gate)
    where asked.id = asked.owner
  ),
  due as (
    insert into faultline.active (id, pos, created_at, lane, key, args, new_columns)
    select won.id, won.id, moment, enqueue_keyed.lane, won.key, won.args, new_columns
    from won
    where enqueue_keyed.limit_id is null and (due_at is null or due_at <= moment)
  )
  insert into faultline.later (id, run_at, created_at, lane, key, args, limit_id, gate, place, new_columns)
  select won.id, coalesce(due_at, moment), moment, enqueue_keyed.lane, won.key, won.args, enqueue_keyed.limit_id, won.gate,
         case when enqueue_keyed.limit_id is not null and (due_at is null or due_at <= moment) then won.id end, new_columns
  from won
  where enqueue_keyed.limit_id is not null or due_at > moment;

  return query select asked.owner, asked.owner = asked.id from unnest(fresh, owner) as asked (id, owner);
end;
$$;
