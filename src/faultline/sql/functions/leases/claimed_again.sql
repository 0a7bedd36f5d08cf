-- The jobs that a claim holds, for a worker whose reply was lost; it scans the table, so it is not on the normal path.
create function faultline.claimed_again(claim uuid, bytes int default 16777216)
returns table (
  id bigint, token bigint, attempt smallint, max_attempts smallint, crashes smallint, task text, queue text,
  args text, key text, created_at timestamptz, lease_for interval, timeout_after interval, retry text,
  lane int, pos bigint, traced text, due_at timestamptz, claimed_at timestamptz, priority smallint,
  key_seed bytea, gate bigint)
language plpgsql
-- The setting of claim() forbids sequential scans; this function needs one.
set enable_seqscan = on
as $$
#variable_conflict use_column
begin
  perform faultline.read_durably();
  return query
  select job.id, job.token, job.attempt, job.max_attempts, job.crashes, job.task::text, lane.queue::text,
         job.args::text, job.key::text, job.created_at, job.lease_for::interval, job.timeout::interval, job.retry::text,
         job.lane, job.pos, job.trace, coalesce(job.due_at, job.created_at), job.claimed_at, lane.priority,
         job.key_seed, job.gate
  from (
    -- As many as fit in the reply; the others come back when their leases expire.
    select job.*, sum(octet_length(job.args) + coalesce(octet_length(job.retry::text), 0)) over (order by job.id) as together, row_number() over (order by job.id) as number
    from faultline.active as job
    where job.claim = claimed_again.claim
  ) as job
  join faultline.lanes as lane on lane.id = job.lane
  where job.together <= claimed_again.bytes or job.number = 1;
end;
$$;
