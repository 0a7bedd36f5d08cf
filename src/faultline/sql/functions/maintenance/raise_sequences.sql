-- Raise `places` (ids) and `tokens` above all numbers that a lost past may have used.
-- After a promotion, a restore, a snapshot or an upgrade their values may be too low. The line is a million plus one number for each
-- microsecond since the installation. No installation enqueues or claims a million times a second on average, so all earlier
-- numbers are below the line, in every history of this database.
-- A rollback undoes nothing here, and no lock stays: the caller's transaction may be a long one of a user.
create function faultline.raise_sequences()
returns void
language plpgsql
volatile
as $$
declare
  more  constant bigint := 100000;
  line  bigint;
begin
  -- One caller at a time: an old value would set a sequence back. It locks a table, which only the owner may do: any login can take
  -- an advisory lock. The lock ends with this block, which always rolls back.
  lock table faultline.migrations in exclusive mode;

  if (select mark.last_value from faultline.server_mark as mark) <> faultline.server_mark() then
    select 1000000 + extract(epoch from faultline.now() - first.applied_at)::numeric * 1000000 into line
    from faultline.migrations as first
    where first.number = 1;

    -- More than the old value, for any clock: callers that draw a number meanwhile stay below it. But not so much more that it decides
    -- between two histories that change their server within 0.1 s. And above the rows: logical replication copies rows, not
    -- sequences.
    perform setval('faultline.places', greatest(line, places.last_value + more, faultline.highest_id() + more))
    from faultline.places as places;
    perform setval('faultline.tokens', greatest(line, tokens.last_value + more))
    from faultline.tokens as tokens;
    perform faultline.step_over_rows();
    perform setval('faultline.server_mark', faultline.server_mark());
  end if;
  raise sqlstate 'LS000';
exception when sqlstate 'LS000' then
  null;
end;
$$;
