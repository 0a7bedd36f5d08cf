-- Tell idle workers that some queues may have work, as `wake` does for one: one notification a queue, and one commit.
create function faultline.wake_each(queues text[])
returns void
language sql
volatile
as $$ select pg_notify('faultline', named.queue) from unnest(wake_each.queues) as named (queue) $$;
