-- Count refused writes, in one row per lease.
-- Only leases that existed are counted: otherwise any client could add rows, and the record would prove nothing. The claim proves
-- that the lease existed; a token is easy to guess.
create function faultline.note_refusals(
  ids bigint[], tokens bigint[], worker int, moment timestamptz, claims uuid[])
returns table (id bigint, token bigint, reason text, current_token bigint)
language plpgsql
volatile
as $$
#variable_conflict use_column
begin
  return query
  with late as materialized (
    select stale.id, stale.token, stale.claims, why.reason, why.current_token
    from (
      select id, token, array_remove(array_agg(claim), null) as claims
      from unnest(note_refusals.ids, note_refusals.tokens, note_refusals.claims) as named (id, token, claim)
      group by id, token
    ) as stale
    cross join lateral faultline.why_refused(stale.id, stale.token) as why
  ),
  noted as (
    insert into faultline.refusals as noted (job_id, token, worker, reason, current_token, first_at, last_at)
    select late.id, late.token, coalesce(note_refusals.worker, 0), late.reason, late.current_token, moment, moment
    from late
    where exists (
        select from faultline.ledger as entry
        where entry.job_id = late.id and entry.token = late.token and entry.claim = any (late.claims))
      or exists (
        select from faultline.active as job
        where job.id = late.id and job.token = late.token and job.claim = any (late.claims))
    order by late.id, late.token
    on conflict on constraint a_refusal_is_counted_in_one_row do update
    set times = noted.times + 1, last_at = excluded.last_at, current_token = excluded.current_token
  )
  select late.id, late.token, late.reason, late.current_token from late;
end;
$$;
