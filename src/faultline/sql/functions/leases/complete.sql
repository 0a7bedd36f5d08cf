-- running -> succeeded: settle the job for good, once.
create function faultline.complete(job_id bigint, token bigint, claim uuid, result faultline.document default null)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  done faultline.active;
begin
  perform faultline.be_durable();

  delete from faultline.active as job
  where job.id    = complete.job_id
    and job.token = complete.token
    and job.claim = complete.claim
  returning job.* into done;

  if not found then
    perform faultline.refuse(complete.job_id, complete.token);   -- raises LS001: lease lost
  end if;

  perform faultline.write_ledger(done, 'succeeded', faultline.now(), result => complete.result);
end;
$$;
