-- What a doorman needs to judge a key that was shown to him: no row when the id is unknown.
create function faultline.find_key(id text)
returns table (hash bytea, name text, scopes text[], queues text[], live boolean, worn boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment timestamptz := faultline.now();
begin
  return query
  select key.hash, key.name, key.scopes, key.queues::text[],
         key.revoked_at is null and coalesce(key.expires_at > moment, true),
         coalesce(key.last_used_at <= moment - interval '1 minute', true)   -- time to note that it is in use
  from faultline.api_keys as key
  where key.id = find_key.id;
end;
$$;
