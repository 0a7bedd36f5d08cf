-- Which jobs wait: one of several of a key, how long, how many, and who of them is next.

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

-- How many due jobs a queue may hold, and after how long a lane moves ahead by one priority. The lanes have copies, and the
-- watchdog's last word on whether their queue is full: an enqueue and a claim read one small row.
alter table faultline.queues
  add column max_depth int
    constraint a_queue_holds_from_1_to_1000000_due_jobs check (max_depth between 1 and 1000000),
  add column age_after interval
    constraint jobs_age_after_a_second_to_a_year
    check (age_after >= interval '1 second' and age_after <= interval '1 year'
           and date_part('month', age_after) = 0 and date_part('year', age_after) = 0 and date_part('day', age_after) >= 0
           and least(date_part('hour', age_after), date_part('minute', age_after), date_part('second', age_after)) >= 0);
alter table faultline.lanes
  add column is_full boolean not null default false,
  add column age_after interval;

create index queues_bounded on faultline.queues (name) where max_depth is not null;
