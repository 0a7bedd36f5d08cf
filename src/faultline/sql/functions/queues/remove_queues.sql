-- Delete queues that have no job and no entry in the ledger; the others are returned with the reason against it.
-- An enqueue reads the lane's number and writes it later. The table lock waits until no such transaction is open, so no job is lost
-- in a deleted lane. It waits for 0.1 s only, because claims wait behind it.
create function faultline.remove_queues(queues text[])
returns table (queue text, removed boolean, said text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  named   int[] := array(select lane.id from faultline.lanes as lane where lane.queue = any (remove_queues.queues));
  newest  bigint;
  told    int[];
  held    int[];
  gone    text[];
begin
  perform faultline.be_durable();
  if coalesce(cardinality(remove_queues.queues), 0) not between 1 and 1000 then
    raise exception 'a call removes from 1 to 1000 queues, not %', coalesce(cardinality(remove_queues.queues), 0)
      using errcode = 'LS005', hint = 'Claims wait while it looks at them: name fewer, and call it again.';
  end if;
  -- Before the lock, because this may read much. Under the lock, only new entries and those that may have been under way are read.
  -- Jobs are read before the ledger: a job that ends meanwhile is then seen in one of them, at any age.
  select places.last_value - 10000 into newest from faultline.places as places;
  held := faultline.lanes_with_jobs(named);
  told := array(select distinct entry.lane from faultline.ledger as entry where entry.lane = any (named));

  perform set_config('lock_timeout', '100ms', true);
  begin
    lock table faultline.lanes in access exclusive mode;
  exception when lock_not_available then
    raise exception 'a transaction that enqueues or claims stays open; no queue was removed'
      using errcode = 'LS004', hint = 'Try again; pg_stat_activity shows what is open.';
  end;
  named := array(select lane.id from faultline.lanes as lane where lane.queue = any (remove_queues.queues));
  held := held || faultline.lanes_with_jobs(named);
  told := told || array(
    select distinct entry.lane from faultline.ledger as entry where entry.job_id >= newest and entry.lane = any (named));

  gone := array(
    select known.name
    from faultline.queues as known
    where known.name = any (remove_queues.queues)
      and not exists (select from faultline.lanes as lane where lane.queue = known.name and lane.id = any (held || told)));
  delete from faultline.lanes as lane where lane.queue = any (gone);
  delete from faultline.queues as known where known.name = any (gone);
  perform faultline.note_act('remove_queue', queue => name) from unnest(gone) as name;

  return query
  select asked.name, asked.name = any (gone), case
    when asked.name = any (gone) then null
    when exists (select from faultline.lanes as lane where lane.queue = asked.name and lane.id = any (held))
      then 'it holds jobs: waiting, running or dead'
    when exists (select from faultline.queues as known where known.name = asked.name)
      then 'entries of the ledger tell of it, until their retention ends'
    else 'there is no such queue' end
  from (select distinct name from unnest(remove_queues.queues) as name) as asked
  order by asked.name;
end;
$$;
