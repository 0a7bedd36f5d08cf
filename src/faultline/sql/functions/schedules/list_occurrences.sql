-- The occurrences of a schedule, newest first, with their jobs; give the last `at` seen as `before` for the next page.
-- The state is that of the job, null where there is none, or none any more.
create function faultline.list_occurrences(name text, before timestamptz default null, most int default 50)
returns table (schedule text, at timestamptz, how text, job_id bigint, state text, decided_at timestamptz)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
  select noted.schedule, noted.at, noted.how, noted.job_id, job.state, noted.decided_at
  from faultline.occurrences as noted
  left join lateral (
    select listed.state::text as state from faultline.outlines as listed where listed.id = noted.job_id
  ) as job on true
  where noted.schedule = list_occurrences.name and noted.at < coalesce(list_occurrences.before, 'infinity')
  order by noted.at desc
  limit least(list_occurrences.most, 1000);
end;
$$;
