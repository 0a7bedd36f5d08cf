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
  busy_ids     bigint[];
  busy_tokens  bigint[];
  busy_claims  uuid[];
  rest_ids     bigint[];
  rest_tokens  bigint[];
  rest_claims  uuid[];
begin
  select array_agg(job.id), array_agg(job.token), array_agg(job.claim)
  into busy_ids, busy_tokens, busy_claims
  from unnest(answer_the_rest.ids, answer_the_rest.tokens, answer_the_rest.claims) as named (id, token, claim)
  join faultline.active as job on job.id = named.id and job.token = named.token and job.claim = named.claim;

  return query
  select busy.id, busy.token, 'busy', null::text, busy.token from unnest(busy_ids, busy_tokens) as busy (id, token);

  -- Told apart by the arrays, not by a second look: whoever came free in between would be answered twice.
  select array_agg(named.id), array_agg(named.token), array_agg(named.claim)
  into rest_ids, rest_tokens, rest_claims
  from unnest(answer_the_rest.ids, answer_the_rest.tokens, answer_the_rest.claims) as named (id, token, claim)
  where not exists (
    select from unnest(through_ids || busy_ids, through_claims || busy_claims) as told (id, claim)
    where told.id = named.id and told.claim = named.claim);

  return query
  select noted.id, noted.token, 'refused', noted.reason, noted.current_token
  from faultline.note_refusals(rest_ids, rest_tokens, answer_the_rest.worker, moment, rest_claims) as noted;
end;
$$;
