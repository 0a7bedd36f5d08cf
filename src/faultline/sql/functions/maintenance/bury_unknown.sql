-- queued -> dead: bury locked jobs of a task that no worker knew for a day.
-- Under a lease of their own, as if a worker had claimed and buried them: the ledger has one entry for each lease.
create function faultline.bury_unknown(ids bigint[], task text, moment timestamptz)
returns bigint
language plpgsql
volatile
as $$
declare
  number bigint;
  died   bigint;
begin
  if cardinality(bury_unknown.ids) = 0 then
    return 0;
  end if;
  perform faultline.be_durable();
  number := faultline.epoch() + nextval('faultline.tokens');   -- after the rows were locked, as in a claim

  update faultline.active as job
  set token       = greatest(number, job.token + 1),
      claim       = gen_random_uuid(),
      claimed_at  = moment,
      claimed_by  = null,
      deadline_at = moment + interval '1 minute',
      lease_until = moment + interval '1 minute',
      attempt     = job.attempt + 1
  where job.id = any (bury_unknown.ids);

  select count(*) into died
  from faultline.put_back(
    bury_unknown.ids, 'dead', format('no worker knew the task %s for a day', bury_unknown.task), moment,
    dead_reason => format('no worker knew the task %s for a day', bury_unknown.task));
  return died;
end;
$$;
