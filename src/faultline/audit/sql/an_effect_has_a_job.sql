-- NothingLost: the job of an effect exists, unless retention or its queue removed it.
select effect_row.job_id, format('token %%s left an effect, and there is no trace of the job', effect_row.token) as told, true as sure
from {effects} as effect_row
where not exists (select from faultline.lanes as lane where lane.keep = 'nothing')
  and not exists (select from faultline.active as job where job.id = effect_row.job_id)
  and not exists (select from faultline.later as job where job.id = effect_row.job_id)
  and not exists (select from faultline.dead as job where job.id = effect_row.job_id)
  and not exists (select from faultline.ledger as entry where entry.job_id = effect_row.job_id)
  and to_regclass('faultline.ledger_' || effect_row.job_id / 1000000) is not null
limit %(most)s
