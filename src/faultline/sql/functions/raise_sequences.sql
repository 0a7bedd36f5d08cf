-- Raise `places` (ids) and `tokens` above all that a lost past may have given: after a promotion, a restore, a snapshot or an upgrade
-- their own values may lie behind it. The line is a million, and one number for each microsecond since the installation: nothing enqueues
-- or claims a million times a second on the average, so whatever was given before now lies below it, in every history of this database.
-- Nothing here is undone by a rollback, and nothing stays locked: the caller's transaction may be a long one of a user's.
create function faultline.raise_sequences()
returns void
language plpgsql
volatile
as $$
declare
  more  constant bigint := 100000;
  line  bigint;
begin
  -- One at a time: a value that was worked out too long ago would set a sequence back. A lock of a table that only the owner may lock:
  -- the number of an advisory lock is for anyone on the database to take. It ends with this block, which is always rolled back.
  lock table faultline.migrations in exclusive mode;

  if (select mark.last_value from faultline.server_mark as mark) <> faultline.server_mark() then
    select 1000000 + extract(epoch from faultline.now() - first.applied_at)::numeric * 1000000 into line
    from faultline.migrations as first
    where first.number = 1;

    -- Some more than was there, whatever the clock says: callers that draw a number meanwhile stay below it. Not so much that it
    -- decides where two histories change their server within a tenth of a second. And above the rows: logical replication copies
    -- them, and no sequence.
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
