-- (no change of state) Keep what a handler raised after its job had succeeded, beside the success in the ledger.
-- False where no row has the success: its queue keeps none, or the entry has a note already.
create function faultline.note_error(job_id bigint, token bigint, claim uuid, error text)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  update faultline.ledger as entry
  set error = left(note_error.error, 8192)
  where entry.job_id  = note_error.job_id
    and entry.slot    = 0
    and entry.outcome = 'succeeded'
    and entry.token   = note_error.token
    and entry.claim   = note_error.claim
    and entry.error is null;
  return found;
end;
$$;
