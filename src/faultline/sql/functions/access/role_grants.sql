-- The functions and views that the group role of each duty may use; it may use no others.
-- `server` is for the process between clients and the database: it may do everything except migrate.
create function faultline.role_grants()
returns table (duty text, kind text, object text)
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select given.duty, listed.kind, given_object.object
  from (values
    ('{producer,worker,watchdog,operator,reader,server}'::text[], 'function', '{schema_version,server_state}'::text[]),
    ('{producer,server}', 'function', '{enqueue,enqueue_many,enqueue_each}'),
    ('{producer,worker,reader,server}', 'function', '{get_outline}'),
    ('{producer,watchdog,operator,server}', 'function', '{wake,wake_each}'),
    ('{worker,server}', 'function',
     '{claim,heartbeat,fence,complete,complete_in,complete_many,fail,fail_in,fail_many,crash,bury,snooze,snooze_in,release,cancel_claimed,outcome,outcome_in,database_identity,note_error,refused,recoveries,zombies,others_serve,newest_place}'),
    ('{worker,watchdog,server}', 'function', '{worker_started,worker_stopped,worker_key,know_tasks}'),
    ('{worker,operator,server}', 'function', '{set_limit,limit_task,move_to_gates}'),
    ('{producer,operator,reader,server}', 'function', '{list_limits}'),
    ('{operator,server}', 'function', '{list_gates}'),
    ('{operator,reader,server}', 'function', '{waits_for}'),
    ('{watchdog,server}', 'function',
     '{round,lead,reap,expire,mark_full,promote,sweep_gates,raise_limit_floors,rescue,quarantine,floors,partitions,drop_partitions,prune,next_due,first_free,quiet_lanes,unknown_tasks,due_schedules,fire,compute_next,hold_schedule,pause_absent,prune_occurrences}'),
    ('{operator,server}', 'function',
     '{cancel,retry_now,replay,replay_many,count_dead,pause,resume,set_retention,configure_queue,remove_queues,configure,act_as,for_each,readable,damage,get_job,list_jobs,find_jobs,count_jobs,ended,changes,list_entries,list_acts,list_keys}'),
    ('{worker,operator,server}', 'function', '{history}'),
    -- A schedule enqueues: that is a producer's duty, and no worker's.
    ('{producer,operator,server}', 'function', '{sync_schedules}'),
    ('{operator,server}', 'function', '{set_schedule,delete_schedule,pause_schedule,resume_schedule,trigger_schedule,backfill,list_schedules}'),
    ('{operator,reader,server}', 'function', '{list_occurrences,occurrence_of}'),
    ('{worker,operator,reader,server}', 'function', '{backlog}'),
    ('{operator,reader,server}', 'function', '{now,health,doctor,metrics,list_queues,list_workers,list_refusals,list_groups}'),
    ('{server}', 'function', '{queues_of,find_keys,key_used,create_key,rotate_key,revoke_key}'),
    ('{operator,server}', 'view', '{jobs,entries,key_list}'),
    ('{operator,reader,server}', 'view', '{outlines,queue_depth,queue_lag,refused_writes,worker_list}')
  ) as listed (duties, kind, objects)
  cross join lateral unnest(listed.duties) as given (duty)
  cross join lateral unnest(listed.objects) as given_object (object)
$$;
