-- Give a key to a job unless another job has it; returns the id of the job that the key names now.
create function faultline.take_key(
  scope text, key faultline.key_name, job_id bigint, request bytea, keep_for interval, moment timestamptz)
returns bigint
language plpgsql
volatile
as $$
declare
  held faultline.keys;
begin
  loop
    insert into faultline.keys (scope, key, job_id, request, keep_for)
    values (take_key.scope, take_key.key, take_key.job_id, take_key.request, take_key.keep_for)
    on conflict do nothing;
    if found then
      return take_key.job_id;
    end if;

    -- A new statement sees the winner of the race; the snapshot of the insert does not.
    select * into held
    from faultline.keys as named
    where named.scope = take_key.scope and named.key = take_key.key;
    continue when not found;

    if held.until < moment then
      update faultline.keys as named
      set job_id = take_key.job_id, request = take_key.request, keep_for = take_key.keep_for, until = null
      where named.scope = take_key.scope and named.key = take_key.key and named.until < moment;
      if found then
        return take_key.job_id;
      end if;
    elsif held.request <> take_key.request then
      raise exception 'the key % in queue % already names job %, which asks for something else',
          quote_literal(take_key.key), take_key.scope, held.job_id
        using errcode = 'LS002',
              detail = json_build_object('job_id', held.job_id::text)::text,
              hint = 'Send the same task and args to get that job back, or use another key.';
    else
      perform faultline.read_durably();   -- the call that made it may have got no answer
      return held.job_id;
    end if;
  end loop;
end;
$$;
