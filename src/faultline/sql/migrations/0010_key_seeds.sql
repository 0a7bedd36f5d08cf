-- 64 random bits that stay with a job all its life: its idempotency keys are made of them and of its id. Ids come again (in another
-- database, after a restore or a lossy failover), the pair does not. Jobs of one statement share them, since their ids differ.
-- As bytea, not as bigint: at the end of the row a bigint would be aligned, and a claim, after which all that stands before it has
-- moved, would log the arguments once more (129 bytes of WAL a job).
-- No default: a function that moves a job and forgets them fails, it does not make new ones.
alter table faultline.active add column key_seed bytea not null default int8send(uuid_hash_extended(gen_random_uuid(), 0));
alter table faultline.later  add column key_seed bytea not null default int8send(uuid_hash_extended(gen_random_uuid(), 0));
alter table faultline.dead   add column key_seed bytea not null default int8send(uuid_hash_extended(gen_random_uuid(), 0));
alter table faultline.active alter column key_seed drop default;
alter table faultline.later  alter column key_seed drop default;
alter table faultline.dead   alter column key_seed drop default;

-- A claim gives back one column more.
update faultline.settings set oldest_client = 10;
