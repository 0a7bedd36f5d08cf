-- Put a free job at the end of its lane; a limited one waits at its gate.
-- A job that comes back always takes a new place, so a lane's floor only rises.
create function faultline.requeue(job faultline.active)
returns void
language plpgsql
volatile
as $$
declare
  moment timestamptz := faultline.now();
begin
  if job.limit_id is not null then
    insert into faultline.later (id, run_at, place, job_columns)
    values (job.id, moment, faultline.place_at_gate(job.limit_id, job.id), job.job_columns);
    return;
  end if;
  insert into faultline.active (id, pos, due_at, job_columns)
  values (job.id, nextval('faultline.places'), moment, job.job_columns);
end;
$$;
