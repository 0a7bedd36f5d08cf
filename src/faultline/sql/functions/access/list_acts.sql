-- What people did, newest first, a page at a time: give the last id seen as `before` for the next page.
create function faultline.list_acts(
  job_id bigint default null, queue text default null, verb text default null, actor text default null,
  before bigint default null, most int default 50)
returns setof faultline.acts
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if list_acts.job_id is not null then   -- separate, because one plan for both would read all acts for those of one job
    return query
    select *
    from faultline.acts as act
    where act.job_id = list_acts.job_id
      -- The other filters apply too: a key for one queue may name any job, and must not see acts on it in another queue.
      and (list_acts.queue is null or act.queue = list_acts.queue)
      and (list_acts.verb is null or act.verb = list_acts.verb)
      and (list_acts.actor is null or act.actor = list_acts.actor)
      and act.id < coalesce(list_acts.before, 9223372036854775807)
    order by act.id desc
    limit list_acts.most;
    return;
  end if;

  return query
  select *
  from faultline.acts as act
  where (list_acts.queue is null or act.queue = list_acts.queue)
    and (list_acts.verb is null or act.verb = list_acts.verb)
    and (list_acts.actor is null or act.actor = list_acts.actor)
    and act.id < coalesce(list_acts.before, 9223372036854775807)
  order by act.id desc
  limit list_acts.most;
end;
$$;
