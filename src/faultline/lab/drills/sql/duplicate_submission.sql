-- The verdict on duplicate submissions: each promise kept or broken, by jobs, ledger, effect rows and the clients' answers.
with
made    as materialized (select * from faultline.list_jobs(queue => %(queue)s, most => 1000) where key = %(key)s),
job     as (select * from made where id = %(job)s),
answer  as materialized (select * from submissions where job_id = %(job)s),
lease   as materialized (select * from faultline.history(%(job)s)),
effect  as materialized (select effects.* from effects join made on made.id = effects.job_id),
winner  as (select * from lease where outcome = 'succeeded'),
done    as (select winner.settled_at from winner)
select promise, coalesce(kept, false) as kept, coalesce(evidence, 'no trace of it') as evidence
from (
  select 1 as place, 'one job was made, for every client and every repeated request' as promise,
         (select count(*) from made) = 1 as kept,
         (select format('%%s submissions were answered, %%s job was made', (select sum(times) from answer), count(*)) from made) as evidence
  union all
  select 2, 'every client that asked for the same was named that job',
         (select bool_and((answer.answer, answer.named) = ('job', job.id))
          from answer join job on answer.amount = (job.args ->> 'amount')::int),
         (select format('%%s answers name job %%s', sum(times), string_agg(distinct named::text, ' and job ')) from answer where answer = 'job')
  union all
  select 3, 'a client that asked for something else under the key was told so',
         (select bool_and(answer.answer = 'conflict') from answer join job on answer.amount <> (job.args ->> 'amount')::int),
         (select format('%%s conflicts', sum(times)) from answer where answer = 'conflict')
  union all
  select 4, 'every submission was answered, but those of the client that was killed',
         (select sum(times) = %(asked)s and bool_and(answer in ('job', 'conflict')) from answer),
         (select format('%%s of %%s: %%s', sum(times), %(asked)s, string_agg(distinct answer, ', ')) from answer)
  union all
  select 5, 'what the killed client had taken and not committed left nothing',
         not exists (select from faultline.get_job(%(taken)s)) and not exists (select from made where made.id = %(taken)s),
         format('it would have been job %%s; the key names job %%s', %(taken)s, %(job)s)
  union all
  select 6, 'the job''s work was committed once',
         (select count(*) = 2 and count(distinct effect.wrote) = 2
                 and bool_and((effect.job_id, effect.token) = (winner.job_id, winner.token))
          from effect cross join winner),
         (select format('%%s effect rows, %%s success', count(*), (select count(*) from winner)) from effect)
  union all
  select 7, 'after its restart, and after the job''s end, the key still names the same job',
         (select count(distinct after) = 2 and bool_and(named = %(job)s) from answer where answer = 'job' and after <> 'the kill')
           and (select count(*) from done) = 1,
         (select string_agg(format('%%s times after %%s', times, after), ', ')
          from (select after, sum(answer.times) as times from answer where answer = 'job' group by after order by after desc) as told)
) as promised
order by place
