-- Count refused writes, one row for each lease that tried.
create function faultline.note_refusals(ids bigint[], tokens bigint[], worker int, moment timestamptz)
returns table (id bigint, token bigint, reason text, current_token bigint)
language plpgsql
volatile
as $$
#variable_conflict use_column
begin
  return query
  with late as materialized (
    select stale.id, stale.token, why.reason, why.current_token
    from (select distinct on (id, token) id, token from unnest(note_refusals.ids, note_refusals.tokens) as named (id, token)) as stale
    cross join lateral faultline.why_refused(stale.id, stale.token) as why
  ),
  noted as (
    insert into faultline.refusals as noted (job_id, token, worker, reason, current_token, first_at, last_at)
    select late.id, late.token, coalesce(note_refusals.worker, 0), late.reason, late.current_token, moment, moment
    from late
    order by late.id, late.token
    on conflict on constraint a_refusal_is_counted_in_one_row do update
    set times = noted.times + 1, last_at = excluded.last_at, current_token = excluded.current_token
  )
  select late.id, late.token, late.reason, late.current_token from late;
end;
$$;
