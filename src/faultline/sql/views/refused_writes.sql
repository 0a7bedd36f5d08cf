-- Every refused late write: its worker, its token, and the newest token at that time.
create view faultline.refused_writes as
select noted.job_id, noted.token, noted.worker as worker_id, worker.name as worker, noted.reason, noted.current_token,
       noted.first_at, noted.last_at, noted.times
from faultline.refusals as noted
left join faultline.workers as worker on worker.id = noted.worker;
