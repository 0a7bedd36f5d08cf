-- Refuse bounds that no limit can have, each by name.
create function faultline.check_limit(
  name text, per_key bigint, total bigint, rate double precision, burst bigint, on_retry text, parent text)
returns void
language plpgsql
immutable
as $$
declare
  wrong text;
begin
  perform name::faultline.limit_name;
  wrong := case
    when name is null then 'a limit has a name'
    when per_key not between 1 and 1000000 then format('per_key is %s, from 1 to 1000000 are allowed', per_key)
    when total not between 1 and 1000000 then format('total is %s, from 1 to 1000000 are allowed', total)
    when rate is not null and not (rate between 1.0 / 604800 and 1000000)
      then format('rate is %s a second, from one a week to 1000000 a second are allowed', rate)
    when burst not between 1 and 1000000 then format('burst is %s, from 1 to 1000000 are allowed', burst)
    when burst is not null and rate is null then 'burst is given without a rate'
    when on_retry not in ('yield', 'block') then format('on_retry is %s, yield or block', quote_literal(on_retry))
    when on_retry = 'block' and per_key is distinct from 1 then 'on_retry is block, which is for per_key 1 only'
    when parent = name then format('limit %s is its own parent', quote_literal(name))
  end;
  if wrong is not null then
    raise exception '%', wrong using errcode = 'LS005', hint = 'Nothing was changed. A paused queue admits nothing.';
  end if;
end;
$$;
