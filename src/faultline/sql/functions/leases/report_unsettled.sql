-- For a batch call: the leases that were not settled, each with the reason; refused ones are recorded.
-- A lease is identified by job and claim, never by the job alone: one batch may hold an old and a new lease of one job.
create function faultline.report_unsettled(
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
  from unnest(report_unsettled.ids, report_unsettled.tokens, report_unsettled.claims) as named (id, token, claim)
  join faultline.active as job on job.id = named.id and job.token = named.token and job.claim = named.claim;

  return query
  select busy.id, busy.token, 'busy', null::text, busy.token from unnest(busy_ids, busy_tokens) as busy (id, token);

  -- By the arrays, not by a second read: a row that was unlocked in between would be answered twice.
  select array_agg(named.id), array_agg(named.token), array_agg(named.claim)
  into rest_ids, rest_tokens, rest_claims
  from unnest(report_unsettled.ids, report_unsettled.tokens, report_unsettled.claims) as named (id, token, claim)
  where not exists (
    select from unnest(through_ids || busy_ids, through_claims || busy_claims) as told (id, claim)
    where told.id = named.id and told.claim = named.claim);

  return query
  select noted.id, noted.token, 'refused', noted.reason, noted.current_token
  from faultline.note_refusals(rest_ids, rest_tokens, report_unsettled.worker, moment, rest_claims) as noted;
end;
$$;
