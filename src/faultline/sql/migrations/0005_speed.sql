-- The few lanes that keep less than everything of a success: each completion asks for them, and most often there are none.
create index lanes_that_keep_less on faultline.lanes (id, keep) where keep <> 'full';

-- The key first: a batch of completions looks for its keys, whatever their queues.
alter table faultline.keys
  drop constraint a_key_names_one_job,
  add constraint a_key_names_one_job primary key (key, scope);

-- Under which server process the epoch was last looked at: as long as it lives, it is the same server.
alter table faultline.settings add column server_started timestamptz not null default '-infinity';
