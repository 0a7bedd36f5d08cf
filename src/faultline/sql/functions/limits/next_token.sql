-- The seconds until an empty bucket for which jobs wait has its next token; null when no job waits for one.
create function faultline.next_token()
returns double precision
language plpgsql
volatile
as $$
declare
  moment timestamptz := faultline.now();
begin
  if not exists (select from faultline.limits as l where l.rate is not null) then
    return null;
  end if;
  return (
    select min(extract(epoch from empty.token_at - moment))
    from (
      select faultline.filled_at(bucket, moment) - (bucket.burst - 1) / bucket.rate * interval '1 second' as token_at
      from faultline.limits as bucket
      where bucket.rate is not null
        and exists (
          select
          from faultline.limits as own
          join faultline.limited_lanes as limited on limited.limit_id = own.id
          join faultline.lanes as lane on lane.id = limited.lane and not lane.paused
          where (own.id = bucket.id or own.parent = bucket.id)
            and exists (
              select from faultline.later as job
              where job.limit_id = own.id and job.lane = limited.lane and job.place >= limited.wait_floor and job.place is not null))
    ) as empty
    where empty.token_at > moment);
end;
$$;
