-- How often a job has crashed alone, in its own process. Only these crashes count towards the budget: in a shared process,
-- another job may be the cause. Null, which takes no space in the row, for the many jobs that never crashed alone.
alter table faultline.active add column crashes_alone smallint;
alter table faultline.later  add column crashes_alone smallint
  constraint crashes_alone_are_among_the_crashes check (crashes_alone is null or crashes_alone between 0 and crashes);
alter table faultline.dead   add column crashes_alone smallint;
