-- Start the window of a settled job's key, which outlives the job.
create function faultline.lapse_key(scope text, key text, job_id bigint, moment timestamptz)
returns void
language sql
volatile
as $$
  update faultline.keys as named
  set until = moment + named.keep_for
  where named.scope = lapse_key.scope and named.key = lapse_key.key and named.job_id = lapse_key.job_id
$$;
