-- The end of every lease, the refused late writes, and the keys of jobs.

create table faultline.ledger (
  job_id       bigint not null,
  slot         bigint not null,
  token        bigint not null,
  created_at   timestamptz not null,
  claimed_at   timestamptz,
  settled_at   timestamptz not null,
  claim        uuid,
  lane         int not null,
  worker       int,
  attempt      smallint not null,
  max_attempts smallint not null,
  crashes      smallint not null,
  outcome      faultline.lease_end not null,
  task         faultline.task_name not null,
  key          faultline.key_name,
  error        text,
  args         faultline.document,
  result       faultline.document,

  -- Slot 0 is the end of the job; any other slot is the token of a lease. So one index allows one end per job and one
  -- entry per lease.
  constraint a_job_ends_once primary key (job_id, slot),
  constraint an_end_stands_in_slot_0_and_anything_else_in_its_tokens
    check (slot = case when outcome in ('succeeded', 'cancelled') then 0 else token end)
) partition by range (job_id);

-- Should stay empty: `faultline.partitions` keeps two ranges ahead. Doctor reports rows in it.
create table faultline.ledger_default partition of faultline.ledger default;

create table faultline.refusals (
  job_id         bigint not null,
  token          bigint not null,
  worker         int not null default 0,
  reason         text not null
                 constraint a_refusal_has_one_of_four_reasons
                 check (reason in ('token_mismatch', 'settled', 'cancelled', 'gone')),
  current_token  bigint,
  first_at       timestamptz not null,
  last_at        timestamptz not null,
  times          bigint not null default 1,
  constraint a_refusal_is_counted_in_one_row primary key (job_id, token, worker, reason)
);

-- `until` is null while the job lives. The key's window starts when the job settles.
create table faultline.keys (
  scope     text not null,
  key       faultline.key_name not null,
  job_id    bigint not null,
  request   bytea not null,
  keep_for  interval not null
            constraint a_key_is_kept_for_0_to_10_years
            check (keep_for >= interval '0' and keep_for <= interval '10 years'),
  until     timestamptz,
  constraint a_key_names_one_job primary key (scope, key)
);

create index keys_until on faultline.keys (until) where until is not null;
