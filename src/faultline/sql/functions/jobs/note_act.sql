-- Record what a person did, in the same transaction: who, when, what, on which object, why.
-- A server names the actor with `act_as`. Without that the actor is the role itself, as with psql.
create function faultline.note_act(
  verb text, job_id bigint default null, queue text default null, detail jsonb default null, reason text default null)
returns void
language sql
volatile
as $$
  insert into faultline.acts (at, actor, role, verb, job_id, queue, detail, reason)
  values (faultline.now(), coalesce(nullif(current_setting('faultline.actor', true), ''), session_user), session_user,
          note_act.verb, note_act.job_id, note_act.queue, note_act.detail,
          left(coalesce(nullif(current_setting('faultline.reason', true), ''), note_act.reason), 1000))
$$;
