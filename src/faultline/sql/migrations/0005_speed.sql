-- The few lanes that keep less than everything of a success. Each completion reads this index, and mostly it is empty.
create index lanes_that_keep_less on faultline.lanes (id, keep) where keep <> 'full';

-- The key is the first column: a batch of completions looks up keys of several queues.
alter table faultline.keys
  drop constraint a_key_names_one_job,
  add constraint a_key_names_one_job primary key (key, scope);

-- The start of the server process that last checked the epoch. While that process lives, the server is the same.
alter table faultline.settings add column server_started timestamptz not null default '-infinity';
