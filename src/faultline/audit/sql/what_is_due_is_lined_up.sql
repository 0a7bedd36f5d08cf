-- Drains: a due job is in its lane. Many jobs may fall due at once, and a queue may have no watchdog, so this is a remark.
select job.id as job_id,
       format('it was due %%s s ago and still waits in `later`',
              round(extract(epoch from faultline.now() - job.run_at), 1)) as told,
       false as sure
from faultline.later as job
where job.id >= %(low)s and job.id < %(high)s
  and job.run_at < faultline.now() - %(bound)s::interval
limit %(most)s
