-- What a server needs to check API keys; no row for an unknown id.
create function faultline.find_keys(ids text[])
returns table (id text, hash bytea, name text, scopes text[], queues text[], live boolean, worn boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment timestamptz := faultline.now();
begin
  return query
  select key.id::text, key.hash, key.name, key.scopes, key.queues::text[],
         key.revoked_at is null and coalesce(key.expires_at > moment, true),
         coalesce(key.last_used_at <= moment - interval '1 minute', true)   -- the use has to be noted again
  from faultline.api_keys as key
  where key.id = any (find_keys.ids);
end;
$$;
