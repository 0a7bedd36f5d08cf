-- Record a refused write, in a second transaction after LS001 rolled back the first.
-- Without the claim nothing is recorded.
create function faultline.refused(job_id bigint, token bigint, worker int default null, claim uuid default null)
returns table (reason text, current_token bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  perform faultline.be_durable();
  return query
  select noted.reason, noted.current_token
  from faultline.note_refusals(array[refused.job_id], array[refused.token], refused.worker, faultline.now(),
    array[refused.claim]) as noted;
end;
$$;
