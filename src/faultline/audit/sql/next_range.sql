-- The first job at or after an id: the walk skips a million ids without jobs in one step.
select least(
  (select min(job.id) from faultline.active as job where job.id >= %(low)s),
  (select min(job.id) from faultline.later as job where job.id >= %(low)s),
  (select min(job.id) from faultline.dead as job where job.id >= %(low)s),
  (select min(entry.job_id) from faultline.ledger as entry where entry.job_id >= %(low)s)) as first
