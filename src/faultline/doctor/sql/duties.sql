-- The role that was made for each duty.
select named.duty, named.role from faultline.list_groups() as named
