-- What a queued job waits for at the gate of its limit: the limit, how many of its key and in total hold a slot, and how many are before
-- it at the gate (each counted up to 10,000). No row for a job that does not wait for a slot.
create function faultline.waits_for(job_id bigint)
returns table (limit_name text, per_key int, total int, rate double precision, held_of_key bigint, held bigint, before bigint, tokens int)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
  select known.name::text, known.per_key, known.total, known.rate,
         (select count(*)
          from (select from faultline.active as held
                where held.limit_id = job.limit_id and held.gate = job.gate limit 10000) as held),
         (select count(*) from (select from faultline.active as held where held.limit_id = job.limit_id limit 10000) as held),
         (select count(*)
          from (select from faultline.later as front
                where front.limit_id = job.limit_id and front.lane = job.lane and front.gate = job.gate
                  and front.place < job.place limit 10000) as front),
         faultline.tokens_left(known, faultline.now())
  from faultline.later as job
  join faultline.limits as known on known.id = job.limit_id
  where job.id = waits_for.job_id and job.place is not null;
end;
$$;
