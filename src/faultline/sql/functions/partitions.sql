-- Keep the ledger's ranges two ahead of the newest job; each index named, so that its errors stay sentences.
-- Rows that meanwhile fell into the default partition are moved where they belong.
create function faultline.partitions()
returns int
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  width   constant bigint := 1000000;
  number  bigint;
  made    int := 0;
begin
  perform set_config('lock_timeout', '100ms', true);
  for number in select faultline.missing_ranges() loop
    begin
      execute format('create table faultline.ledger_%s (like faultline.ledger including defaults including constraints)', number);
      execute format('alter table faultline.ledger_%s add constraint a_job_ends_once_%s primary key (job_id, slot)', number, number);
      execute format(
        'with strays as (delete from faultline.ledger_default where job_id >= %s and job_id < %s returning *) '
        'insert into faultline.ledger_%s select * from strays', number * width, (number + 1) * width, number);
      execute format(
        'alter table faultline.ledger attach partition faultline.ledger_%s for values from (%s) to (%s)',
        number, number * width, (number + 1) * width);
    exception when lock_not_available then
      return made;   -- somebody holds the ledger; the next turn tries again
    end;
    made := made + 1;
  end loop;
  return made;
end;
$$;
