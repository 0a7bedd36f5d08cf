-- How many effects there are to look at.
select count(*) as effects from {effects} as effect_row
