-- Drains: no lease stays past its end by more than the bound. After a start of the server, or while reaping holds its
-- fire, that is to be expected for a while, and no more than a remark.
with reaping as (
  select faultline.now() as moment,
         last.hold_until > faultline.now()
           or faultline.now() < pg_postmaster_start_time() + setting.default_lease + %(bound)s::interval as held
  from faultline.rounds as last
  cross join faultline.settings as setting
)
select job.id as job_id,
       format('its lease, token %%s, ran out %%s s ago and nobody has taken it back', job.token,
              round(extract(epoch from reaping.moment - job.lease_until), 1)) as told,
       not reaping.held as sure
from faultline.active as job
cross join reaping
where job.id >= %(low)s and job.id < %(high)s
  and job.lease_until < reaping.moment - %(bound)s::interval
limit %(most)s
