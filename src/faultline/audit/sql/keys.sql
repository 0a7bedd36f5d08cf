-- The number of keys held for jobs that have not ended.
select count(*) as keys from faultline.keys as named where named.until is null
