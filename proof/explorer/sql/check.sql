-- Every invariant that is broken at the end of an order, with what is wrong. No rows: all of them hold.
create function explorer.check()
returns table (invariant text, wrong text)
language sql
as $$
  -- NoZombie: nothing is written in the name of a lease that had ended.
  select 'NoZombie', format('%s committed a row for job %s with token %s, %s', mine.who, mine.job_id, mine.token,
    case mine.said_when when 'after' then 'after that lease had ended' else 'a lease that no entry knows' end)
  from explorer.rows_of_users as mine
  where mine.said_when in ('after', 'never') or (mine.kind = 'work' and mine.outcome <> 'succeeded')

  union all
  select 'NoZombie', format('%s was told that %s of job %s with token %s is done, but the ledger says %s (%s)', told.who, told.verb,
    told.job_id, told.token, coalesce(told.outcome::text, 'nothing'), told.said_when)
  from explorer.answers as told
  where told.answer = 'done' and told.claim is not null
    and (told.said_when <> 'with' or told.outcome::text <> all (case told.verb
      when 'complete' then array['succeeded'] when 'complete_many' then array['succeeded']
      when 'fail' then array['failed', 'dead'] when 'fail_many' then array['failed', 'dead'] when 'bury' then array['dead'] when 'snooze' then array['snoozed']
      when 'release' then array['released'] when 'cancel_claimed' then array['cancelled'] end))

  union all
  select 'NoZombie', format('%s was told that it holds job %s with token %s, after that lease had ended', told.who, told.job_id, told.token)
  from explorer.answers as told
  where told.answer = 'held' and told.said_when = 'after'

  union all
  select 'NoZombie', format('%s was told that token %s of job %s has committed nothing, and then it did', told.who, told.token, told.job_id)
  from explorer.answers as told
  where told.answer = 'running' and told.outcome = 'succeeded' and told.said_when = 'before'

  -- OneEffect: a success has its one row, anything else has none; and a key makes one job in its window.
  union all
  select 'OneEffect', format('job %s has %s committed rows and ended %s times', job.id, job.effects, job.ends)
  from (
    select asked.job_id as id,
      (select count(*) from explorer.effects as effect where effect.job_id = asked.job_id and effect.kind = 'work') as effects,
      (select count(*) from faultline.ledger as entry where entry.job_id = asked.job_id and entry.outcome = 'succeeded') as ends
    from (select distinct told.job_id from explorer.told as told where told.verb = 'enqueue') as asked
  ) as job
  where job.effects <> job.ends or job.ends > 1

  union all
  select 'OneEffect', format('the key %s made job %s and, within its window, job %s', first.key, first.job_id, second.job_id)
  from explorer.told as first
  join explorer.told as second on second.key = first.key and second.job_id > first.job_id and second.answer = 'done'
  join lateral (
    select entry.created_at from faultline.ledger as entry where entry.job_id = second.job_id limit 1) as made on true
  left join lateral (
    -- Its last end under that key: a dead job that was replayed after another job took the key goes on without it.
    select max(entry.settled_at) as at from faultline.ledger as entry
    where entry.job_id = first.job_id and entry.key = first.key and (entry.slot = 0 or entry.outcome = 'dead')) as ended on true
  where first.verb = 'enqueue' and second.verb = 'enqueue' and first.answer = 'done'
    and (ended.at is null or made.created_at <= ended.at + first.keep_for)

  -- Each occurrence of a schedule has one job, none is passed over, and the next time is behind them all.
  union all
  select 'OneEffect', format('%s jobs were made for %s occurrences', made.jobs, made.occurrences)
  from (
    select (select count(distinct entry.job_id) from faultline.ledger as entry where entry.task = 'scheduled') as jobs,
           (select count(*) from faultline.occurrences as noted where noted.job_id is not null) as occurrences) as made
  where made.jobs <> made.occurrences

  union all
  select 'OneEffect', format('schedule %s is due next at %s, and has %s occurrences', mine.name, mine.next_at, noted.times)
  from faultline.schedules as mine
  cross join lateral (
    select count(*) as times from faultline.occurrences as noted where noted.schedule = mine.name and noted.at < mine.next_at) as noted
  where mine.task = 'scheduled'
    and noted.times <> round(extract(epoch from mine.next_at - mine.starts_at) / extract(epoch from mine.every)) - 1

  -- Once the higher release has synced, what it has is its own.
  union all
  select 'TerminalStays', format('%s was told that its release %s has synced, and schedule %s is of release %s', told.who, told.token,
    mine.name, mine.release)
  from explorer.told as told
  join faultline.schedules as mine on mine.name = 'tick'
  where told.verb = 'sync' and told.answer = 'done' and mine.release < array[told.token]

  -- OwnerIsOne: a job stands in one place, its leases follow one another, and an owner is not refused.
  union all
  select 'OwnerIsOne', format('%s jobs stand in two places', places.doubled)
  from faultline.jobs_in_two_places() as places (doubled)
  where places.doubled > 0

  union all
  select 'OwnerIsOne', format('job %s was claimed with token %s before token %s had ended', early.job_id, late.token, early.token)
  from faultline.ledger as early
  join faultline.ledger as late on late.job_id = early.job_id and late.token > early.token
  where late.claimed_at < early.settled_at

  union all
  select 'OwnerIsOne', format('%s was refused as owner of job %s with token %s (%s), which had not ended', told.who, told.job_id, told.token, told.answer)
  from explorer.answers as told
  where told.answer in ('refused', 'lost', 'cancel', 'gone') and told.said_when <> 'after'
    and not exists (
      select from explorer.hands as hand
      where hand.job_id = told.job_id and hand.claim = told.claim and hand.is_lost)

  union all
  select 'OwnerIsOne', format('token %s of job %s was taken as expired at %s, though renewed until %s', entry.token, entry.job_id, entry.settled_at, renewed.until)
  from faultline.ledger as entry
  join (
    select hand.token, hand.job_id, hand.claim, hand.until from explorer.hands as hand
    union all
    select told.token, told.job_id, told.claim, told.until from explorer.told as told where told.answer = 'held'
  ) as renewed on renewed.job_id = entry.job_id and renewed.token = entry.token and renewed.claim = entry.claim
  where entry.error = 'lease expired' and entry.settled_at <= renewed.until

  -- TerminalStays: nothing follows an end, and what a person was told stays true.
  union all
  select 'TerminalStays', format('job %s ended with token %s, and then token %s was granted', ended.job_id, ended.token, entry.token)
  from faultline.ledger as ended
  join faultline.ledger as entry on entry.job_id = ended.job_id and entry.token > ended.token
  where ended.slot = 0

  union all
  select 'TerminalStays', format('%s was told that job %s is cancelled, and it is %s', told.who, told.job_id, coalesce(job.state, 'nowhere'))
  from explorer.told as told
  left join faultline.jobs as job on job.id = told.job_id
  where told.verb = 'cancel' and told.answer = 'done' and job.state is distinct from 'cancelled'

  union all
  select 'TerminalStays', format('job %s died %s times and was replayed %s times', replayed.job_id, deaths.times, replayed.times)
  from (
    select told.job_id, count(*) as times from explorer.told as told
    where told.verb = 'replay' and told.answer = 'done' group by told.job_id) as replayed
  cross join lateral (
    select count(*) as times from faultline.ledger as entry
    where entry.job_id = replayed.job_id and entry.outcome = 'dead') as deaths
  where replayed.times > deaths.times

  -- TokenGrows: each claim of a job has a higher token than the one before.
  union all
  select 'TokenGrows', format('job %s was granted token %s and then token %s', early.job_id, early.token, late.token)
  from explorer.hands as early
  join explorer.hands as late on late.job_id = early.job_id and late.turn > early.turn
  where late.token <= early.token and not early.is_lost

  -- NothingLost: every job that was asked for is there, every lease has its one entry, every attempt and crash is counted.
  union all
  select 'NothingLost', format('%s was told that its job is %s, and there is no such job', told.who, coalesce(told.job_id::text, 'null'))
  from explorer.told as told
  left join faultline.jobs as job on job.id = told.job_id
  where told.verb = 'enqueue' and told.answer in ('done', 'same') and job.id is null

  union all
  select 'NothingLost', format('%s claimed job %s with token %s, and the ledger has %s entries of it', hand.who, hand.job_id, hand.token, entries.times)
  from explorer.hands as hand
  cross join lateral (
    select count(*) as times from faultline.ledger as entry
    where entry.job_id = hand.job_id and entry.token = hand.token and entry.claim = hand.claim) as entries
  where entries.times <> 1 and not hand.is_lost

  union all
  select 'NothingLost', format('token %s of job %s says attempt %s and %s crashes, by the entries before it %s and %s', counted.token,
    counted.job_id, counted.attempt, counted.crashes, counted.attempts_seen, counted.crashes_seen)
  from (
    select entry.*,
      count(*) filter (where entry.claim is not null and entry.outcome not in ('snoozed', 'released')) over earlier
        + (entry.outcome in ('snoozed', 'released'))::int as attempts_seen,
      count(*) filter (where entry.error = 'lease expired') over earlier as crashes_seen
    from faultline.ledger as entry
    where not exists (   -- a replayed job starts to count again
      select from faultline.ledger as death where death.job_id = entry.job_id and death.outcome = 'dead' and death.token < entry.token)
    window earlier as (partition by entry.job_id order by entry.token, entry.slot desc)
  ) as counted
  where counted.attempt <> counted.attempts_seen or counted.crashes <> counted.crashes_seen

  -- SeesCommit: a job that was told to a producer as queued begins after the producer's commit.
  union all
  select 'SeesCommit', format('%s was told that job %s waits (%s), and no claim of it came after the commit', asked.who, asked.job_id, asked.answer)
  from explorer.queued_once as asked
  where not asked.is_seen
  -- WithinLimit: at no claim do more jobs of the limit hold a lease than it allows.
  union all
  select 'WithinLimit', format('at the claim of job %s with token %s, %s jobs of its limit held a lease, and %s may', held.job_id, held.token,
    held.at_once, bound.most)
  from explorer.limited as held
  cross join explorer.at_most as bound
  where held.at_once > bound.most

  -- Drains: a fresh worker and a fresh watchdog leave nothing to do.
  union all
  select 'Drains', format('job %s is still %s', job.id, job.state)
  from faultline.jobs as job
  where job.state in ('queued', 'running', 'waiting')
$$;
