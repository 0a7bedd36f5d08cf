-- The schedule and the occurrence that a job was made for; no row for a job of no schedule.
create function faultline.occurrence_of(job bigint)
returns table (schedule text, at timestamptz, how text, job_id bigint, state text, decided_at timestamptz)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
  select noted.schedule, noted.at, noted.how, noted.job_id, null::text, noted.decided_at
  from faultline.occurrences as noted
  where noted.job_id = occurrence_of.job;
end;
$$;
