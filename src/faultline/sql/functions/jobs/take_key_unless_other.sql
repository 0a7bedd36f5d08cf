-- Give a key to a job, as take_key does; returns null if it already names another request, so that a batch does not fail for one job.
-- If another transaction gives the key away after the look here, take_key raises: then the batch fails, and nothing is written.
create function faultline.take_key_unless_other(
  scope text, key faultline.key_name, job_id bigint, request bytea, keep_for interval, moment timestamptz)
returns bigint
language plpgsql
volatile
as $$
begin
  if exists (
    select
    from faultline.keys as named
    where named.scope = take_key_unless_other.scope and named.key = take_key_unless_other.key
      and named.request <> take_key_unless_other.request and (named.until is null or named.until >= moment))
  then
    return null;
  end if;
  return faultline.take_key(scope, key, job_id, request, keep_for, moment);
end;
$$;
