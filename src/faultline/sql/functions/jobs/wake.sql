-- Tell idle workers that a queue may have work: a hint, nothing depends on its arrival.
-- Call it after the commit, separately: with a NOTIFY in the enqueuing transaction, all such commits of the server wait for each other.
create function faultline.wake(queue text)
returns void
language sql
volatile
as $$ select pg_notify('faultline', wake.queue) $$;
