-- Drop the ledger's ranges in which every job ended before the retention.
-- The lock timeout is short: a locked range is tried again later.
create function faultline.drop_partitions()
returns int
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  width    constant bigint := 1000000;
  moment   timestamptz := faultline.now();
  oldest   timestamptz;
  newest   bigint;
  number   bigint;
  settled  timestamptz;
  dropped  int := 0;
begin
  perform set_config('lock_timeout', '100ms', true);
  perform faultline.end_when_idle();   -- completions wait for its table locks
  select moment - setting.ledger_retention into oldest from faultline.settings as setting;
  select places.last_value into newest from faultline.places as places;

  for number in
    select substring(part.relname from '^ledger_([0-9]+)$')::bigint
    from pg_inherits as link
    join pg_class as part on part.oid = link.inhrelid
    where link.inhparent = 'faultline.ledger'::regclass and part.relname <> 'ledger_default'
    order by 1
  loop
    exit when (number + 1) * width > newest;
    continue when exists (select from faultline.active as job where job.id >= number * width and job.id < (number + 1) * width)
               or exists (select from faultline.later as job where job.id >= number * width and job.id < (number + 1) * width)
               or exists (select from faultline.dead as job where job.id >= number * width and job.id < (number + 1) * width);
    execute format('select max(settled_at) from faultline.ledger_%s', number) into settled;
    exit when settled >= oldest;   -- ranges end roughly in order: the first young one ends the search
    begin
      execute format('drop table faultline.ledger_%s', number);
    exception when lock_not_available then
      return dropped;
    end;
    dropped := dropped + 1;
  end loop;
  return dropped;
end;
$$;
