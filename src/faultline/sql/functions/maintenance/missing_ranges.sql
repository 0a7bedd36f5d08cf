-- The numbers of the ledger's ranges that are needed and do not exist.
-- Needed are the range of the newest id, two ahead, and those of entries in the default partition. If any of them is missing, the
-- ranges of all jobs that have not ended are checked too. Ids may jump (raise_sequences); the ranges in between are not made,
-- because there could be thousands.
create function faultline.missing_ranges()
returns setof bigint
language plpgsql
volatile
as $$
declare
  width  constant bigint := 1000000;
  ahead  constant int := 2;
  there  bigint[];
  low    bigint := 0;
  first  bigint;
begin
  there := array(
    select substring(part.relname from '^ledger_([0-9]+)$')::bigint
    from pg_inherits as link
    join pg_class as part on part.oid = link.inhrelid
    where link.inhparent = 'faultline.ledger'::regclass and part.relname <> 'ledger_default');

  select places.last_value / width into first from faultline.places as places;
  return query select wanted from generate_series(first, first + ahead) as wanted where wanted <> all (there);
  if not found and not exists (select from faultline.ledger_default) then
    return;
  end if;

  there := there || array(select generate_series(first, first + ahead));
  loop
    first := least(
      (select min(job.id) from faultline.active as job where job.id >= low),
      (select min(job.id) from faultline.later as job where job.id >= low),
      (select min(job.id) from faultline.dead as job where job.id >= low),
      (select min(entry.job_id) from faultline.ledger_default as entry where entry.job_id >= low)) / width;
    exit when first is null;
    return query select first where first <> all (there);
    low := (first + 1) * width;
  end loop;
end;
$$;
