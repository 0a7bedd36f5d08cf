-- For the bound on the workers of an API key. Heartbeats change neither column.
create index workers_key_name on faultline.workers (key_name, id) where key_name is not null;
