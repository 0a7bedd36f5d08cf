-- By how many priorities a lane moves ahead for the age of its first free job.
create function faultline.aged(lane int, start bigint, age_after interval, moment timestamptz)
returns int
language plpgsql
stable
as $$
begin
  return (
    select least(greatest(floor(extract(epoch from moment - coalesce(job.due_at, job.created_at)) / extract(epoch from age_after)), 0), 1000)
    from faultline.active as job
    where job.lane = aged.lane and job.pos >= aged.start and job.claim is null
      and (job.expires_at is null or job.expires_at > moment)
    order by job.pos
    limit 1);
end;
$$;
