-- The server process under which `places` and `tokens` were last raised, by the microsecond of its start. A sequence, because its value
-- outlives a rollback: an enqueue in a long transaction of a user's notices another server too, and must not hold a row's lock for it.
create sequence faultline.server_mark as bigint;
