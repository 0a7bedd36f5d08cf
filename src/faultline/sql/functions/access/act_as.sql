-- Set the actor and the reason that the rest of this transaction records. The session's role is always recorded too.
create function faultline.act_as(actor text, reason text default null)
returns void
language plpgsql
volatile
as $$
begin
  perform set_config('faultline.actor', left(act_as.actor, 200), true);
  perform set_config('faultline.reason', left(act_as.reason, 1000), true);
end;
$$;
