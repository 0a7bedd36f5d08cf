-- running -> queued | dead, many at once: returns only the jobs that were not settled, as complete_many does.
create function faultline.fail_many(
  ids bigint[], tokens bigint[], claims uuid[], errors text[], delays interval[], worker int default null)
returns table (id bigint, token bigint, answer text, reason text, current_token bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment          timestamptz := faultline.now();
  through_ids     bigint[];
  through_claims  uuid[];
  their_errors    text[];
  their_delays    interval[];
begin
  perform faultline.be_durable();

  select array_agg(held.id), array_agg(held.claim), array_agg(held.error), array_agg(coalesce(held.delay, interval '0'))
  into through_ids, through_claims, their_errors, their_delays
  from (
    select job.id, job.claim, failed.error, failed.delay
    from unnest(fail_many.ids, fail_many.tokens, fail_many.claims, fail_many.errors, fail_many.delays)
      as failed (id, token, claim, error, delay)
    cross join lateral (
      select job.id, job.claim
      from faultline.active as job
      where job.id = failed.id and job.token = failed.token and job.claim = failed.claim
      for no key update skip locked
    ) as job
  ) as held;

  perform faultline.put_back(through_ids, 'failed', null, moment, errors => their_errors, delays => their_delays);

  if cardinality(ids) > coalesce(cardinality(through_ids), 0) then
    return query select * from faultline.report_unsettled(
      fail_many.ids, fail_many.tokens, fail_many.claims, through_ids, through_claims, fail_many.worker, moment);
  end if;
end;
$$;
