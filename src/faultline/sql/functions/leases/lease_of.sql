-- The length of a running job's lease: the job's own, else the one its worker asks for, else the default.
create function faultline.lease_of(lease_for interval, worker int)
returns interval
language sql
stable
as $$
  select coalesce(
    lease_of.lease_for,
    (select known.lease_for from faultline.workers as known where known.id = lease_of.worker),
    (select setting.default_lease from faultline.settings as setting))
$$;
