-- Note that an API key is in use; the row changes at most once a minute, with any number of servers.
create function faultline.key_used(id text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  moment timestamptz := faultline.now();
begin
  update faultline.api_keys as key
  set last_used_at = moment
  from (
    select worn.id
    from faultline.api_keys as worn
    where worn.id = key_used.id and coalesce(worn.last_used_at <= moment - interval '1 minute', true)
    for no key update skip locked
  ) as worn
  where key.id = worn.id;
end;
$$;
