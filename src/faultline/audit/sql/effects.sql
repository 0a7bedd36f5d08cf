-- The number of effects to check.
select count(*) as effects from {effects} as effect_row
