-- Raise the sequences of lanes, workers and acts above their rows, which logical replication copies without sequences.
create function faultline.step_over_rows()
returns void
language plpgsql
volatile
as $$
begin
  perform setval('faultline.lanes_id_seq', highest.id)
  from (select max(lane.id) as id from faultline.lanes as lane) as highest, faultline.lanes_id_seq as numbers
  where highest.id >= numbers.last_value;

  perform setval('faultline.workers_id_seq', highest.id)
  from (select max(worker.id) as id from faultline.workers as worker) as highest, faultline.workers_id_seq as numbers
  where highest.id >= numbers.last_value;

  perform setval('faultline.limits_id_seq', highest.id)
  from (select max(l.id) as id from faultline.limits as l) as highest, faultline.limits_id_seq as numbers
  where highest.id >= numbers.last_value;

  perform setval('faultline.limits_used', 1)
  where exists (select from faultline.task_limits) or exists (select from faultline.limited_lanes);

  perform setval('faultline.acts_id_seq', highest.id)
  from (select max(act.id) as id from faultline.acts as act) as highest, faultline.acts_id_seq as numbers
  where highest.id >= numbers.last_value;
end;
$$;
