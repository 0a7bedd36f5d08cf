-- Whether this database has used limits. PL/pgSQL computes it without a query.
create function faultline.uses_limits()
returns boolean
language sql
volatile
as $$
  select pg_sequence_last_value('faultline.limits_used'::regclass) is not null
$$;
