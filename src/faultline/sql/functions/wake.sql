-- Tell idle workers that a queue may have work. A hint: nothing depends on its arrival.
-- Call it after the commit, on its own: a NOTIFY inside the enqueuing transaction makes all such commits of the server queue up.
create function faultline.wake(queue text)
returns void
language sql
volatile
as $$ select pg_notify('faultline', wake.queue) $$;
