-- Create an API key from the hash of its secret; the secret itself is never sent here.
-- A name has one live key.
create function faultline.create_key(
  id text, hash bytea, name text, scopes text[], queues text[] default null, expires_at faultline.moment default null)
returns setof faultline.key_list
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment timestamptz := faultline.now();
begin
  perform faultline.be_durable();
  perform faultline.hold_keys();
  if exists (select from faultline.key_list as key where key.name = create_key.name and key.live) then
    raise exception 'there is a live API key named %', quote_literal(create_key.name)
      using errcode = 'LS004', hint = 'Rotate it, revoke it, or choose another name.';
  end if;
  if create_key.expires_at <= moment then
    raise exception 'an API key that expired before it was made is of no use' using errcode = 'LS005';
  end if;

  insert into faultline.api_keys (id, hash, name, scopes, queues, created_at, expires_at)
  values (create_key.id, create_key.hash, create_key.name, create_key.scopes, create_key.queues, moment,
          create_key.expires_at);
  perform faultline.note_act('create_key', detail => jsonb_build_object(
    'key', create_key.id, 'name', create_key.name, 'scopes', create_key.scopes, 'queues', create_key.queues));
  return query select * from faultline.key_list as key where key.id = create_key.id;
end;
$$;
