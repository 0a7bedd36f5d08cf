-- Give a key to a job by a rule; returns the id of the job that the key names now, or null where it names a job of another task.
-- The request of such a key is the task alone: jobs of one key may differ in their args, and the rule says which args stay.
create function faultline.take_key_by_rule(
  named_rule text, scope text, key faultline.key_name, job_id bigint, task text, args text, due_at timestamptz, key_for interval,
  moment timestamptz, siblings bigint[], limit_id int default null, gate bigint default null)
returns bigint
language plpgsql
volatile
as $$
declare
  rule     faultline.key_rule := named_rule;
  request  bytea := sha256(convert_to(take_key_by_rule.task, 'UTF8'));
begin
  if take_key_by_rule.key is null then
    raise exception 'a key rule is for jobs with a key, and a job has none'
      using errcode = 'LS005', hint = 'Give each job a key, or leave the rule out.';
  end if;
  if rule = 'debounce' and coalesce(due_at <= moment, true) then
    raise exception 'a debounced job waits, and this one is due at once'
      using errcode = 'LS005', hint = 'Give a delay: it begins again with each enqueue of the key.';
  end if;
  if rule in ('while_queued', 'replace', 'debounce') then
    return faultline.take_queued(
      rule, scope, key, job_id, request, args, due_at, key_for, moment, siblings, limit_id, gate);
  end if;
  return faultline.take_key_unless_other(
    scope, key, job_id, request, case when rule = 'while_unfinished' then interval '0' else key_for end, moment);
end;
$$;
