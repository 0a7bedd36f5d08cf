-- running -> queued, with the attempt given back: the lease ends without a real attempt.
create function faultline.give_back(
  job_id bigint, token bigint, claim uuid, ending faultline.lease_end, delay interval, note text,
  unknown_task boolean default false)
returns void
language plpgsql
volatile
as $$
declare
  held    faultline.active;
  moment  timestamptz;
begin
  perform faultline.be_durable();

  delete from faultline.active as job
  where job.id    = give_back.job_id
    and job.token = give_back.token
    and job.claim = give_back.claim
  returning job.* into held;

  if not found then
    perform faultline.refuse(give_back.job_id, give_back.token);
  end if;

  moment := faultline.now();
  perform faultline.write_ledger(held, give_back.ending, moment, error => nullif(give_back.note, ''));

  held.attempt := held.attempt - 1;
  held.expires_at := case when give_back.unknown_task then held.expires_at end;   -- it has begun: only its first claim had to be in time
  held.unknown_since := case when give_back.unknown_task then coalesce(held.unknown_since, moment) end;
  if give_back.delay <= interval '0' then
    perform faultline.requeue(held);
  else
    held.error := coalesce(left(nullif(give_back.note, ''), 8192), held.error);
    insert into faultline.later (id, run_at, holds, job_columns)
    values (held.id, moment + give_back.delay, faultline.holds_gate(held.limit_id), held.job_columns);
  end if;
end;
$$;
