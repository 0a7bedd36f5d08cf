-- Cancel, retry or replay several jobs; a refusal of one job does not stop the others.
create function faultline.for_each(verb text, ids bigint[], reason text default null)
returns table (id bigint, done boolean, said text, lined_up_in text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  one    bigint;
  queue  text;
begin
  -- In the order of the ids, so that two calls wait for each other and do not deadlock.
  for one in select distinct asked.id from unnest(for_each.ids) as asked (id) order by asked.id loop
    queue := null;
    begin
      case for_each.verb
        when 'cancel' then perform faultline.cancel(one, for_each.reason);
        when 'retry' then queue := faultline.retry_now(one);
        when 'replay' then queue := faultline.replay(one);
        else raise exception 'there is no verb %', quote_literal(for_each.verb)
          using errcode = 'LS005', hint = 'cancel, retry or replay.';
      end case;
      return query select one, true, null::text, queue;
    exception when sqlstate 'LS003' or sqlstate 'LS004' then
      return query select one, false, sqlerrm, null::text;
    end;
  end loop;
end;
$$;
