-- 64 random bits that a job keeps for life. Its idempotency keys are made of these bits and its id. Ids can come again (in another
-- database, after a restore or a lossy failover); the pair does not. Jobs of one statement share the bits, since their ids differ.
-- The type is bytea: a bigint at the end of the row would be aligned. A claim moves the columns before it, and with the padding
-- each claim would log the arguments again (129 bytes of WAL per job).
-- No default: a function that moves a job and forgets the bits fails, and does not make new ones.
alter table faultline.active add column key_seed bytea not null default int8send(uuid_hash_extended(gen_random_uuid(), 0));
alter table faultline.later  add column key_seed bytea not null default int8send(uuid_hash_extended(gen_random_uuid(), 0));
alter table faultline.dead   add column key_seed bytea not null default int8send(uuid_hash_extended(gen_random_uuid(), 0));
alter table faultline.active alter column key_seed drop default;
alter table faultline.later  alter column key_seed drop default;
alter table faultline.dead   alter column key_seed drop default;

-- A claim returns one more column.
update faultline.settings set oldest_client = 10;
