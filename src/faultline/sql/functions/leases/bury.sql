-- running -> dead: the handler reports that no further attempt will help.
create function faultline.bury(job_id bigint, token bigint, claim uuid, reason text, error text default null)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform faultline.be_durable();
  perform faultline.fence(bury.job_id, bury.token, bury.claim);
  perform faultline.put_back(
    array[bury.job_id], 'dead', coalesce(bury.error, bury.reason), faultline.now(),
    dead_reason => coalesce(nullif(bury.reason, ''), 'buried by its handler'));
end;
$$;
