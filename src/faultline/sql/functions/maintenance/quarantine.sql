-- queued -> dead: bury rows with a token out of range (changed by hand), so that they do not block claims of other jobs.
create function faultline.quarantine(most int default 500)
returns table (id bigint, queue text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  damaged bigint[];
begin
  damaged := array(
    select job.id
    from faultline.lanes as lane
    cross join lateral (
      select job.id
      from faultline.active as job
      where job.lane = lane.id and job.token >= 2305843009213693952
      order by job.pos
      limit quarantine.most
      for no key update skip locked
    ) as job
    limit quarantine.most);

  return query
  select buried.id, buried.queue
  from faultline.put_back(
    damaged, 'dead', 'its token is out of range', faultline.now(), dead_reason => 'damaged: token out of range') as buried;
end;
$$;
