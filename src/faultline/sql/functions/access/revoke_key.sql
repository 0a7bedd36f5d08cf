-- Revoke an API key for good; a repeated call has no effect.
create function faultline.revoke_key(id text, reason text default null)
returns setof faultline.key_list
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  revoked faultline.api_keys;
begin
  perform faultline.be_durable();
  update faultline.api_keys as key
  set revoked_at = faultline.now()
  where key.id = revoke_key.id and key.revoked_at is null
  returning key.* into revoked;

  if found then
    perform faultline.note_act('revoke_key', detail => jsonb_build_object('key', revoked.id, 'name', revoked.name),
                               reason => revoke_key.reason);
  elsif not exists (select from faultline.api_keys as key where key.id = revoke_key.id) then
    raise exception 'there is no API key %', quote_literal(revoke_key.id)
      using errcode = 'LS003', hint = 'See `faultline keys list`.';
  else
    perform faultline.read_durably();
  end if;
  return query select * from faultline.key_list as key where key.id = revoke_key.id;
end;
$$;
