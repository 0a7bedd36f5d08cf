"""Mutants of fair shares: each lets one key take what the others need."""

from proof.mutants.mutant import Mutant, Patch

FAIR = "tests/server/test_fair_shares.py"
WHO = "tests/api/test_s2_who_may_do_what.py"
CARGO = "tests/remote/test_cargo.py"
PACING = "tests/server/test_pacing.py"

MUTANTS = (
    Mutant(
        "long polls and heartbeats have one budget", "G13",
        f"{FAIR}::test_a_thousand_long_polls_of_one_key_stop_no_heartbeat_of_another",
        (
            Patch("remote/serving/workers.py", '@unary("work", POLL,', '@unary("work", VITAL,'),
            Patch("remote/serving/config.py", "vital_at_once_max: int = 2_000", "vital_at_once_max: int = 1_000"),
            Patch("remote/serving/config.py", "vital_at_once_per_key: int = 500", "vital_at_once_per_key: int = 5_000"),
        ),
        red_by=("AioRpcError",),
    ),
    Mutant(
        "one key takes all event streams", "G13", f"{FAIR}::test_one_read_key_cannot_take_all_event_streams",
        (Patch("server/limits.py", "subscribers_per_key: int = 20", "subscribers_per_key: int = 2_000"),),
    ),
    Mutant(
        "each client of the figures has them counted for itself", "G13",
        f"{FAIR}::test_150_clients_of_stats_cost_two_questions_and_hold_up_nobody",
        (Patch("api/shared.py", "        if self._next is None:\n", "        if True:\n"),),
    ),
    Mutant(
        "connections are lent in the order of arrival", "G13",
        f"{FAIR}::test_slow_reads_of_one_key_leave_connections_to_the_others",
        (Patch("server/server.py", ", turns=Turns(POOL_MAX)", ""),),
    ),
    Mutant(
        "two keys hold all the room for jobs on their way", "G13",
        f"{CARGO}::test_a_key_takes_no_more_of_the_room_than_it_leaves_free",
        (Patch("remote/serving/cargo.py", "and (not held or held + CLAIM_BYTES_MAX <= free)", "and True"),),
    ),
    Mutant(
        "answers that are not read keep their room until the call's deadline", "G13",
        f"{CARGO}::test_many_keys_that_do_not_read_are_hung_up_on_and_their_jobs_come_back",
        (Patch("remote/serving/cargo.py", "                    load.hurry()\n", "                    pass\n"),),
    ),
    Mutant(
        "a connection whose answer is not read stays open", "G13",
        f"{CARGO}::test_many_keys_that_do_not_read_are_hung_up_on_and_their_jobs_come_back",
        (Patch("remote/serving/workers.py", "            self.gate.connections.hang_up(context.peer())\n", ""),),
        red_by=("TimeoutError",),
    ),
    Mutant(
        "documents of some kilobytes are checked as they come", "G13",
        f"{PACING}::test_every_door_paces_its_large_documents",
        (Patch("server/pacing.py", "LARGE_BYTES: Final = 4_096", "LARGE_BYTES: Final = 65_536"),),
    ),
    Mutant(
        "a payload is read and written again on its way", "G13",
        "tests/remote/test_jobs.py::test_a_payload_is_passed_on_as_it_is_kept",
        (
            Patch("remote/serving/jobs.py", "calls.get_unread(request.id),", "calls.get(request.id),"),
            Patch("remote/serving/jobs.py", "info.args or NULL", "__import__('json').dumps(info.args).encode()"),
        ),
    ),
    Mutant(
        "numbers far from one are read by the slow way of the fast parser", "G13",
        f"{PACING}::test_a_number_far_from_one_costs_little_more_than_another",
        (Patch("args/document.py", "_far if scan.has_far_numbers() else _near", "_near"),),
    ),
    Mutant(
        "a list of queues reads all that waits for later once for each", "G13",
        "tests/sql/test_views.py::test_a_list_of_queues_reads_a_few_pages_for_each_of_them",
        (
            Patch("sql/views/queue_lag.sql", "left join (\n  select lane.queue, min(job.run_at) as run_at\n",
                  "left join lateral (\n  select min(job.run_at) as run_at\n"),
            Patch("sql/views/queue_lag.sql", "where job.run_at <= (select faultline.now())\n  group by lane.queue\n",
                  "where lane.queue = owner.name and job.run_at <= faultline.now()\n"),
            Patch("sql/views/queue_lag.sql", "as first_late on first_late.queue = owner.name;", "as first_late on true;"),
        ),
    ),
)  # fmt: skip
