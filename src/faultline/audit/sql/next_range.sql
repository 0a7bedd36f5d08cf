-- The first job at or after a place: where nothing is left of a million ids, the walk steps over them.
select least(
  (select min(job.id) from faultline.active as job where job.id >= %(low)s),
  (select min(job.id) from faultline.later as job where job.id >= %(low)s),
  (select min(job.id) from faultline.dead as job where job.id >= %(low)s),
  (select min(entry.job_id) from faultline.ledger as entry where entry.job_id >= %(low)s)) as first
