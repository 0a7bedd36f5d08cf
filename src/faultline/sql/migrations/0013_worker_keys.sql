-- The name of the worker's API key, which a rotation keeps; null for a worker that is connected to the database directly.
-- Through a server, only this key can use the worker's number. Without the check, another key could stop the worker or record
-- refusals in its name.
alter table faultline.workers add column key_name text;
