-- Which role was made for which duty.
select named.duty, named.role from faultline.list_groups() as named
