-- running -> queued: the worker gives the job back (it stops, or could not begin), and the attempt does not count.
create function faultline.release(
  job_id bigint, token bigint, claim uuid, delay faultline.wait default interval '0', reason text default null)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform faultline.give_back(
    release.job_id, release.token, release.claim, 'released', coalesce(release.delay, interval '0'), release.reason);
end;
$$;
