-- Make a limit or change its bounds; a bound that is null does not limit. It holds at once: lower bounds stop admissions, and end no lease.
-- `from_code` is for workers, which declare their limits as they start: a change by hand stays until the declaration itself changes.
create function faultline.set_limit(
  name text, per_key bigint default null, total bigint default null, rate double precision default null, burst bigint default null,
  on_retry text default null, parent text default null, from_code boolean default false)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  asked   jsonb;
  old     faultline.limits;
  above   faultline.limits;
  place   record;
begin
  perform faultline.be_durable();
  perform faultline.check_limit(name, per_key, total, rate, burst, on_retry, parent);
  asked := jsonb_build_object('per_key', per_key, 'total', total, 'rate', rate, 'burst', burst, 'on_retry', on_retry, 'parent', parent);

  -- In the order in which a claim locks them: a parent before its children, else by id.
  insert into faultline.limits (name) values (set_limit.name) on conflict do nothing;
  perform from faultline.limits as l
  where l.name in (set_limit.name, set_limit.parent)
  order by coalesce(l.parent, l.id), l.parent is not null, l.id
  for no key update;

  if set_limit.parent is not null then
    select * into above from faultline.limits as l where l.name = set_limit.parent;
    if above.id is null then
      raise exception 'there is no limit %, which was named as the parent', quote_literal(set_limit.parent)
        using errcode = 'LS005', hint = 'Make the parent first.';
    elsif above.parent is not null then
      raise exception 'limit % has a parent itself, so it cannot be one', quote_literal(set_limit.parent)
        using errcode = 'LS005', hint = 'Limits are two levels deep: a queue''s, and those of its tasks.';
    end if;
  end if;

  select * into old from faultline.limits as l where l.name = set_limit.name;
  if set_limit.from_code and old.declared = asked then
    return false;
  end if;
  if set_limit.parent is not null and exists (select from faultline.limits as l where l.parent = old.id) then
    raise exception 'limit % is the parent of others, so it has no parent', quote_literal(set_limit.name)
      using errcode = 'LS005', hint = 'Limits are two levels deep: a queue''s, and those of its tasks.';
  end if;

  update faultline.limits as l
  set per_key = set_limit.per_key, total = set_limit.total, rate = set_limit.rate,
      burst = case when set_limit.rate is not null then coalesce(set_limit.burst, greatest(1, ceil(set_limit.rate))) end,
      on_retry = coalesce(set_limit.on_retry, 'yield'), parent = above.id, rest_until = '-infinity',
      declared = case when set_limit.from_code then asked else old.declared end
  where l.id = old.id;
  if old.on_retry = 'block' and set_limit.on_retry is distinct from 'block' then
    update faultline.later as job set holds = null where job.limit_id = old.id and job.holds;
  end if;

  for place in
    select distinct limited.queue
    from faultline.limited_lanes as limited
    join faultline.limits as l on l.id = limited.limit_id
    where old.id in (l.id, l.parent)
  loop
    perform faultline.wake(place.queue);   -- there may be room now
  end loop;
  perform faultline.note_act('set_limit', detail => jsonb_strip_nulls(asked || jsonb_build_object('name', set_limit.name)));
  return true;
end;
$$;
