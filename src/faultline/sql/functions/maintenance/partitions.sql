-- Create the ledger's ranges up to two ahead of the newest job.
-- Each index has a name, so that its errors stay sentences. Rows in the default partition move to their new range.
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
  perform faultline.end_when_idle();   -- completions wait for its table locks
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
      return made;   -- the ledger is locked; the next turn tries again
    end;
    made := made + 1;
  end loop;
  return made;
end;
$$;
