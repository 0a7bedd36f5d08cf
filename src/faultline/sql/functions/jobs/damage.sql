-- What is wrong with a job's row that was changed by hand; null for a sound row.
create function faultline.damage(args text, result text, task text, run_at timestamptz, created_at timestamptz, others timestamptz[])
returns text
language plpgsql
immutable
as $$
begin
  return nullif(concat_ws('; ',
    case when task is null then 'it has no task' end,
    case when args is not null and faultline.readable(args) is null then 'its args are no JSON document' end,
    case when result is not null and faultline.readable(result) is null then 'its result is no JSON document' end,
    case when run_at is null or created_at is null or exists (
      select from unnest(others || run_at || created_at) as moment
      where moment not between timestamptz '1970-01-01 00:00+00' and timestamptz '9000-01-01 00:00+00')
      then 'a moment of it is none' end), '');
end;
$$;
