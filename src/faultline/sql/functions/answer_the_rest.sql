-- For a batch verb: which of the named leases did not get through, and why; the refused ones are recorded.
-- A lease is told apart by job and claim, never by job alone: one batch may hold an old and a new lease of one job.
create function faultline.answer_the_rest(
  ids bigint[], tokens bigint[], claims uuid[], through_ids bigint[], through_claims uuid[], worker int, moment timestamptz)
returns table (id bigint, token bigint, answer text, reason text, current_token bigint)
language plpgsql
volatile
as $$
#variable_conflict use_column
declare
  rest_ids     bigint[];
  rest_tokens  bigint[];
begin
  return query
  select job.id, job.token, 'busy', null::text, job.token
  from unnest(answer_the_rest.ids, answer_the_rest.tokens, answer_the_rest.claims) as named (id, token, claim)
  join faultline.active as job on job.id = named.id and job.token = named.token and job.claim = named.claim;

  select array_agg(named.id), array_agg(named.token)
  into rest_ids, rest_tokens
  from unnest(answer_the_rest.ids, answer_the_rest.tokens, answer_the_rest.claims) as named (id, token, claim)
  where not exists (
      select from unnest(through_ids, through_claims) as through (id, claim)
      where through.id = named.id and through.claim = named.claim)
    and not exists (
      select from faultline.active as job
      where job.id = named.id and job.token = named.token and job.claim = named.claim);

  return query
  select noted.id, noted.token, 'refused', noted.reason, noted.current_token
  from faultline.note_refusals(rest_ids, rest_tokens, answer_the_rest.worker, moment) as noted;
end;
$$;
