-- Say for whom, and why, the rest of this transaction acts: its verbs note it. The role is noted beside it, in any case.
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
