-- Drains: no lease stays past its end for longer than the bound. After a start of the server, and while reaping holds its fire, this is
-- expected for a while, and only a remark.
with reaping as materialized (
  select faultline.now() as moment,
         (select last.hold_until from faultline.rounds as last) > faultline.now()
           or faultline.now() < pg_postmaster_start_time() + %(bound)s::interval
                                + (select setting.default_lease from faultline.settings as setting) as held
)
select job.id as job_id,
       format('its lease, token %%s, ran out %%s s ago and was not taken back', job.token,
              round(extract(epoch from (select reaping.moment from reaping) - job.lease_until), 1)) as told,
       not (select reaping.held from reaping)
         and not exists (   -- after a gap between rounds each lease has its own time, as in lease_of
           select from faultline.rounds as last, faultline.settings as setting, unnest(last.gap_at) as gap (ended)
           where (select reaping.moment from reaping) between gap.ended and gap.ended + %(bound)s::interval + coalesce(
             job.lease_for, (select known.lease_for from faultline.workers as known where known.id = job.claimed_by),
             setting.default_lease)) as sure
from faultline.active as job
where job.id >= %(low)s and job.id < %(high)s
  and job.lease_until < (select reaping.moment from reaping) - %(bound)s::interval
limit %(most)s
