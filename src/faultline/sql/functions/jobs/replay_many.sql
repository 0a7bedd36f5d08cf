-- dead -> queued, by filter: a repeated call replays no job twice.
create function faultline.replay_many(
  queue text default null, task text default null, died_after timestamptz default null, most int default 1000)
returns table (id bigint, lined_up_in text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  chosen bigint[];
  raised record;
begin
  perform faultline.be_durable();
  chosen := array(
    select job.id
    from faultline.dead as job
    join faultline.lanes as lane on lane.id = job.lane
    where (replay_many.queue is null or lane.queue = replay_many.queue)
      and (replay_many.task is null or job.task = replay_many.task)
      and (replay_many.died_after is null or job.died_at >= replay_many.died_after)
    order by job.id
    limit replay_many.most
    for update of job skip locked);
  if cardinality(chosen) = 0 then
    perform faultline.read_durably();   -- an earlier call that got no answer may have replayed them all
  end if;
  for raised in select * from faultline.raise_dead(chosen) loop
    perform faultline.note_act('replay_many', raised.id, raised.queue);
    id := raised.id;
    lined_up_in := raised.queue;
    return next;
  end loop;
end;
$$;
