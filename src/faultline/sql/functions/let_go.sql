-- Leave the role to which the schema was given, so that the giver is no back door to it.
create function faultline.let_go(owner text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if not (select known.rolsuper from pg_roles as known where known.rolname = current_user) then
    execute format('revoke %I from %I', let_go.owner, current_user);
  end if;
end;
$$;
