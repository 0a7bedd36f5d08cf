-- What a drill leaves in a database that is not its own, once its jobs have ended: taken away, all of its own queues.
delete from faultline.ledger as entry using faultline.lanes as lane
where lane.id = entry.lane and lane.queue like %(queue)s || '%%';

delete from faultline.refusals as refusal
using faultline.workers as worker
where worker.id = refusal.worker and worker.queues[1] like %(queue)s || '%%';

delete from faultline.keys as named where named.scope like %(queue)s || '%%';

delete from faultline.workers as worker where worker.queues[1] like %(queue)s || '%%';

delete from faultline.dead as job using faultline.lanes as lane where lane.id = job.lane and lane.queue like %(queue)s || '%%';

delete from faultline.lanes as lane where lane.queue like %(queue)s || '%%';

delete from faultline.queues as queue where queue.name like %(queue)s || '%%'
