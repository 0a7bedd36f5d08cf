-- The tasks that a worker knows: claims of this worker take no other jobs. A worker without a row takes jobs of every task.
-- Apart from `workers`: each claim reads this row, and heartbeats make new versions of the other.
create table faultline.known_tasks (
  worker  int primary key references faultline.workers (id) on delete cascade,
  tasks   text[] not null
          constraint a_worker_names_at_most_1000_tasks check (cardinality(tasks) <= 1000),
  names   jsonb not null   -- the same as keys of an object, in which a claim finds one of 500 names in nine steps
);

-- Not compressed: each claim would unpack it.
alter table faultline.known_tasks alter column names set storage external;
