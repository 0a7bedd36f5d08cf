-- The start, in microseconds, of the server process under which `places` and `tokens` were last raised. It is a sequence because a
-- rollback does not undo its value, and because it needs no row lock: a user's long transaction that enqueues may write it too.
create sequence faultline.server_mark as bigint;
