-- How often a job has crashed alone, in a process of its own: only that counts towards its budget of crashes, since any
-- other crash may have been a neighbour's. Null, which takes no room on the page, for the many that never did.
alter table faultline.active add column crashes_alone smallint;
alter table faultline.later  add column crashes_alone smallint
  constraint crashes_alone_are_among_the_crashes check (crashes_alone is null or crashes_alone between 0 and crashes);
alter table faultline.dead   add column crashes_alone smallint;
