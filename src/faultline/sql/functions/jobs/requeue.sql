-- Put a free job at the end of its lane.
-- A job that comes back always takes a new place, so a lane's floor only rises.
create function faultline.requeue(job faultline.active)
returns void
language sql
volatile
as $$
  insert into faultline.active (id, pos, due_at, job_columns)
  values (job.id, nextval('faultline.places'), faultline.now(), job.job_columns)
$$;
