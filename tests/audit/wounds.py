"""Wounds: the SQL by which a database is damaged; `%(job)s` is the job it is done to."""

from typing import Final

ENDS_ANYWHERE: Final = """
alter table faultline.ledger
drop constraint if exists an_end_stands_in_slot_0_and_anything_else_in_its_tokens
"""
HALF_LEASES: Final = "alter table faultline.active drop constraint if exists a_running_job_is_leased"
SECOND_SUCCESS: Final = """
insert into faultline.ledger
select (jsonb_populate_record(
          entry, jsonb_build_object('slot', 77, 'token', 77, 'claim', gen_random_uuid()))).*
from faultline.ledger as entry where entry.job_id = %(job)s and entry.outcome = 'succeeded'
"""
ENDED_YET_RUNNING: Final = """
insert into faultline.ledger (job_id, slot, token, created_at, claimed_at, settled_at, claim, lane, attempt,
                              max_attempts, crashes, outcome, task)
select id, token, token, created_at, claimed_at, now(), claim, lane, attempt,
       max_attempts, crashes, 'failed', task
from faultline.active where id = %(job)s
"""
QUEUED_AGAIN: Final = """
insert into faultline.active (id, pos, token, created_at, lane, attempt, max_attempts, task, args,
                              key_seed)
select job_id, 1, token, created_at, lane, attempt, max_attempts, task, '{}', '12345678'
from faultline.ledger where job_id = %(job)s and slot = 0
"""
A_LATER_LEASE: Final = """
insert into faultline.ledger
select (jsonb_populate_record(
          entry,
          jsonb_build_object('slot', 88, 'token', 88, 'outcome', 'failed', 'claim', gen_random_uuid()))).*
from faultline.ledger as entry where entry.job_id = %(job)s and entry.slot = 0
"""
A_SECOND_END: Final = """
insert into faultline.ledger
select (jsonb_populate_record(entry, jsonb_build_object('slot', 99, 'outcome', 'succeeded'))).*
from faultline.ledger as entry where entry.job_id = %(job)s and entry.slot = 0
"""
DEAD_AS_WELL: Final = """
insert into faultline.dead
  (id, died_at, token, created_at, lane, attempt, max_attempts, crashes, task, reason, args, key_seed)
select job_id, settled_at, token, created_at, lane, attempt, max_attempts, crashes, task, 'why', '{}',
       '12345678'
from faultline.ledger where job_id = %(job)s and slot = 0
"""
REFUSED_BY_ANOTHER: Final = """
insert into faultline.refusals (job_id, token, reason, current_token, first_at, last_at)
values (%(job)s, 1, 'token_mismatch', 66, now(), now())
"""
ALSO_LATER: Final = """
insert into faultline.later (id, run_at, created_at, lane, max_attempts, task, args, key_seed)
select id, now() + interval '1 hour', created_at, lane, max_attempts, task, args, key_seed
from faultline.active where id = %(job)s
"""
EFFECTS: Final = "create table if not exists effects (job_id bigint, token bigint, claim uuid, attempt int)"
EFFECT: Final = """
insert into effects
select job_id, token, claim, attempt from faultline.ledger where job_id = %(job)s and slot = 0
"""
