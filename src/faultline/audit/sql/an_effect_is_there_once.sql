-- OneEffect: a job has each effect once. A table with several kinds of effects names the kind in a column `effect`.
select effect_row.job_id,
       format('its effect is there %%s times, by tokens %%s', count(*),
              string_agg(effect_row.token::text, ', ' order by effect_row.token)) as told,
       true as sure
from {effects} as effect_row
group by effect_row.job_id, to_jsonb(effect_row) ->> 'effect'
having count(*) > 1
limit %(most)s
