-- From a job's enqueueing to its recorded end, in milliseconds, by the database's clock.
select percentile_cont(array[0.5, 0.95, 0.99, 1.0]) within group
  (order by extract(epoch from entry.settled_at - entry.created_at)::float8 * 1000)
from faultline.ledger as entry
where entry.slot = 0 and entry.task = %(task)s
