-- Create the next API key of a name, with the same rights; the old key stays valid for `overlap`.
-- A name never has more than two live keys.
create function faultline.rotate_key(
  id text, new_id text, hash bytea, overlap interval default interval '1 day', expires_at faultline.moment default null)
returns setof faultline.key_list
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment  timestamptz := faultline.now();
  old     faultline.api_keys;
begin
  perform faultline.be_durable();
  perform faultline.hold_keys();
  select * into old from faultline.api_keys as key where key.id = rotate_key.id for update;
  if not found then
    raise exception 'there is no API key %', quote_literal(rotate_key.id)
      using errcode = 'LS003', hint = 'See `faultline keys list`.';
  elsif old.revoked_at is not null or old.expires_at <= moment then
    raise exception 'the API key % no longer opens anything, there is nothing to rotate', quote_literal(rotate_key.id)
      using errcode = 'LS004', hint = 'Make a new one with `faultline keys create`.';
  elsif (select count(*) from faultline.key_list as key where key.name = old.name and key.live) > 1 then
    raise exception 'two API keys named % are live already', quote_literal(old.name)
      using errcode = 'LS004', hint = 'Revoke the older one once it is no longer used, then rotate again.';
  elsif extract(epoch from rotate_key.overlap) not between 0 and 90 * 86400 then
    raise exception 'two keys are live together for 0 to 90 days at most' using errcode = 'LS005';
  end if;

  update faultline.api_keys as key
  set expires_at = least(key.expires_at::timestamptz, moment + rotate_key.overlap)
  where key.id = old.id;
  insert into faultline.api_keys (id, hash, name, scopes, queues, created_at, expires_at)
  values (rotate_key.new_id, rotate_key.hash, old.name, old.scopes, old.queues, moment, rotate_key.expires_at);
  perform faultline.note_act('rotate_key', detail => jsonb_build_object(
    'key', old.id, 'name', old.name, 'new_key', rotate_key.new_id));
  return query select * from faultline.key_list as key where key.id = rotate_key.new_id;
end;
$$;
