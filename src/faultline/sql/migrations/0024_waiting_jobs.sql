-- Which jobs wait: one of several of a key, and how long.

-- What an enqueue does with a key that names a job already.
create domain faultline.key_rule as text
  constraint a_key_rule_is_one_of_six
    check (value in ('while_queued', 'while_unfinished', 'per_period', 'throttle', 'replace', 'debounce'));

-- How long a job may wait for its first claim. Null, which takes no space in the row, for all other jobs. A job that was claimed once
-- has none: no claim changes it, since an index holds it, and what puts a job back leaves it out.
alter table faultline.active add column expires_at faultline.moment;
alter table faultline.later  add column expires_at faultline.moment;

create index active_expires on faultline.active (expires_at) where expires_at is not null;
create index later_expires on faultline.later (expires_at) where expires_at is not null;
