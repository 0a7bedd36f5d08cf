-- Give up membership of the schema's new owner, so that the old owner is no way into it.
create function faultline.leave_owner_role(owner text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if not (select known.rolsuper from pg_roles as known where known.rolname = current_user) then
    execute format('revoke %I from %I', leave_owner_role.owner, current_user);
  end if;
end;
$$;
