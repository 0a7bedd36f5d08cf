-- What the walk has to know before it starts, from the snapshot that it reads.
select faultline.now() as moment,
       pg_is_in_recovery() as standby,
       coalesce(greatest(
         (select max(job.id) from faultline.active as job),
         (select max(job.id) from faultline.later as job),
         (select max(job.id) from faultline.dead as job),
         (select max(entry.job_id) from faultline.ledger as entry)), 0) as highest
