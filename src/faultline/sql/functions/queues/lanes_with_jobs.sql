-- The lanes among these that hold a job: waiting, running or dead.
create function faultline.lanes_with_jobs(lanes int[])
returns int[]
language sql
volatile   -- each call takes a new snapshot
as $$
  select array(
    select job.lane from faultline.active as job where job.lane = any (lanes_with_jobs.lanes)
    union select job.lane from faultline.later as job where job.lane = any (lanes_with_jobs.lanes)
    union select job.lane from faultline.dead as job where job.lane = any (lanes_with_jobs.lanes))
$$;
