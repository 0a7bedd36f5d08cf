-- The role as which the functions run: doctor cannot see what that role cannot see.
select pg_get_userbyid(home.nspowner) from pg_namespace as home where home.nspname = 'faultline'
