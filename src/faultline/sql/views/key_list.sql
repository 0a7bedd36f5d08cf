-- The API keys for people: everything but their hashes.
create view faultline.key_list as
select key.id, key.name, key.scopes, key.queues::text[] as queues, key.created_at, key.expires_at::timestamptz as expires_at,
       key.revoked_at, key.last_used_at,
       key.revoked_at is null and coalesce(key.expires_at > faultline.now(), true) as live
from faultline.api_keys as key;
