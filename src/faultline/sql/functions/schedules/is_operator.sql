-- Whether a role may operate schedules: an operator, the server, the owner or a superuser.
create function faultline.is_operator(login name)
returns boolean
language sql
stable
as $$
  select bool_or(has_function_privilege(login, verb.oid, 'execute'))
  from pg_proc as verb
  where verb.proname = 'pause_schedule' and verb.pronamespace = 'faultline'::regnamespace
$$;
