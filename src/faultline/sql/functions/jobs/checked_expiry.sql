-- The moment at which a job expires; raises an error where that is before it is due.
-- A job that is late already is taken, and ends as expired: the call may have been slow.
create function faultline.checked_expiry(expires_at timestamptz, due_at timestamptz, moment timestamptz)
returns timestamptz
language plpgsql
immutable
as $$
begin
  if expires_at <= due_at and due_at > moment then
    raise exception 'a job expires at %, and is due at % only', expires_at, due_at
      using errcode = 'LS005', hint = 'Let it expire later, or be due earlier. Nothing was enqueued.';
  end if;
  return expires_at;
end;
$$;
