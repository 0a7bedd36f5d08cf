-- Whether the full gates of a limit rest, so that claims look at the freed ones alone. A clock that is set back must not make it long.
create function faultline.rests(until timestamptz)
returns boolean
language sql
volatile
as $$
  select rests.until > read.moment and rests.until <= read.moment + interval '1 minute'
  from (select faultline.now() as moment) as read
$$;
