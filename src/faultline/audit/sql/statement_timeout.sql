-- The next statement may take as long as this, in milliseconds.
select set_config('statement_timeout', %(milliseconds)s, true) as allowed
