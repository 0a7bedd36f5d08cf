-- API keys, and the record of what people did to jobs, queues and keys.

-- A key is shown once, in the reply that creates it. This table has only its hash: 256 random bits need no salt and no slow hash.
create table faultline.api_keys (
  id            text primary key
                constraint an_api_keys_id_is_12_hexadecimal_digits check (id ~ '^[0-9a-f]{12}$'),
  hash          bytea not null
                constraint an_api_key_is_kept_as_its_sha_256 check (octet_length(hash) = 32),
  name          text not null
                constraint an_api_keys_name_is_1_to_100_printable_characters
                check (char_length(name) between 1 and 100 and name !~ '[\u0001-\u001f\u007f-\u009f]'),
  scopes        text[] not null
                constraint an_api_key_has_scopes_among_enqueue_read_work_operate_admin
                check (cardinality(scopes) > 0 and array_position(scopes, null) is null
                       and scopes <@ array['enqueue', 'read', 'work', 'operate', 'admin']),
  queues        faultline.queue_name[]
                constraint an_api_key_is_for_all_queues_or_for_1_to_1000
                check (queues is null or cardinality(queues) between 1 and 1000),
  created_at    timestamptz not null,
  expires_at    faultline.moment,
  revoked_at    timestamptz,
  last_used_at  timestamptz
);

create index api_keys_name on faultline.api_keys (name);

-- Append-only: no function updates a row, and only prune deletes rows, after their retention. `actor` is what the caller said;
-- `role` is the session's database role. A session can lie about the actor, not about the role.
create table faultline.acts (
  id      bigint generated always as identity primary key,
  at      timestamptz not null,
  actor   text not null,
  role    text not null,
  verb    text not null,
  job_id  bigint,
  queue   text,
  detail  jsonb,
  reason  text
);

create index acts_job on faultline.acts (job_id, id) where job_id is not null;
create index acts_at on faultline.acts (at);

-- The group roles that `faultline.make_roles` made. A migration grants them the functions that it creates again.
create table faultline.groups (
  duty  text primary key
        constraint a_group_has_one_of_the_known_duties
        check (duty in ('producer', 'worker', 'watchdog', 'operator', 'reader', 'server', 'migrator', 'owner')),
  role  name not null
);

alter table faultline.settings
  add column acts_retention interval not null default interval '1 year'
  constraint acts_are_kept_for_a_day_or_more check (acts_retention >= interval '1 day');
