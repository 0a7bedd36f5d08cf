-- Let the full gates of a limit rest: a look at them, which began at `since`, takes at most a twentieth of a core.
create function faultline.rest_gates(limit_id int, since timestamptz)
returns void
language sql
volatile
as $$
  update faultline.limits as l
  set rest_until = read.moment + least(20 * (read.moment - rest_gates.since), interval '10 seconds')
  from (select faultline.now() as moment) as read
  where l.id = rest_gates.limit_id
$$;
