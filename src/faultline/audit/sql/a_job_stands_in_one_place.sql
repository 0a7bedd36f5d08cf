-- OwnerIsOne: a job that has not ended is one row in one table.
with standing as (
  select job.id, 'active' as place from faultline.active as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, 'later' from faultline.later as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, 'dead' from faultline.dead as job where job.id >= %(low)s and job.id < %(high)s
)
select standing.id as job_id,
       format('it stands in %%s', string_agg(standing.place, ' and in ' order by standing.place)) as told,
       true as sure
from standing
group by standing.id
having count(*) > 1
limit %(most)s
