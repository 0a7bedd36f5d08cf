-- The limit of the next statement, in milliseconds.
select set_config('statement_timeout', %(milliseconds)s, true) as allowed
