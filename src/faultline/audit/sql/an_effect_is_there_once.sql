-- OneEffect: a job's effect is there once. A table that holds several kinds names them in a column `effect`.
select effect.job_id,
       format('its effect is there %%s times, by tokens %%s', count(*),
              string_agg(effect.token::text, ', ' order by effect.token)) as told,
       true as sure
from {effects} as effect
group by effect.job_id, to_jsonb(effect) ->> 'effect'
having count(*) > 1
limit %(most)s
