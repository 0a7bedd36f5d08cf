-- The live API keys, newest first, without their hashes; with `gone`, revoked and expired keys too.
create function faultline.list_keys(gone boolean default false)
returns setof faultline.key_list
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select *
  from faultline.key_list as key
  where key.live or list_keys.gone
  order by key.created_at desc, key.id;
end;
$$;
