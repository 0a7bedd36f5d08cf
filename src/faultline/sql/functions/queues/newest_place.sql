-- The newest place that a job was given in any lane: a later one is further on. A worker begins its claims there after it has seen
-- that all jobs before it are of other apps.
create function faultline.newest_place()
returns bigint
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select drawn.last_value from faultline.places as drawn
$$;
