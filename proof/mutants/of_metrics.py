"""Mutants of the figures and the traces: each event is seen and counted once, and seeing it stops no worker."""

from proof.mutants.mutant import Mutant, Patch, sql

COUNTING = "tests/metrics/test_counting.py"
PROCESSES = "tests/metrics/test_processes.py"
TRACING = "tests/metrics/test_tracing.py"

MUTANTS = (
    Mutant(
        "a refused write is not counted", "G4", f"{COUNTING}::test_a_bad_day_is_counted",
        (Patch("metrics/event_counter.py", 'self.figures.add("stale_writes_refused", (facts["queue"], facts["reason"]))', "pass"),),
    ),
    Mutant(
        "an expired lease is not counted", "G8", f"{COUNTING}::test_a_bad_day_is_counted",
        (Patch("metrics/event_counter.py", 'self.figures.add("leases_expired", (facts["queue"],))', "pass"),),
    ),
    Mutant(
        "two processes are counted twice", "G12",
        f"{PROCESSES}::test_two_processes_are_one_set_and_nothing_is_counted_twice",
        (Patch("metrics/process_group.py", "self._ended, *told])", "self._ended, *told, *told])"),),
    ),
    Mutant(
        "what a dead process counted is forgotten", "G12",
        f"{PROCESSES}::test_a_dead_process_keeps_its_counts_and_loses_its_gauges",
        (Patch("metrics/process_group.py", "merged([self._ended, lasting(figures)])", "self._ended"),),
    ),
    Mutant(
        "every queue name is a label", "G13",
        "tests/metrics/test_figures.py::test_s13_a_hundred_thousand_queue_names_are_a_hundred_and_other",
        (Patch("metrics/series.py", "if len(known) >= VALUES_MAX[label]:", "if False:"),),
    ),
    Mutant(
        "every queue of the database is told by its name", "G13",
        "tests/metrics/test_database.py::test_s13_a_hundred_thousand_queues_are_a_hundred_and_other_and_take_no_time",
        (sql("queue_figures", "queues_max  constant int := 100;", "queues_max  constant int := 1000000;"),),
    ),
    Mutant(
        "a scheduled job is behind from its making", "G8",
        "tests/metrics/test_database.py::test_a_job_that_was_scheduled_is_behind_from_its_moment_and_not_from_its_making",
        (sql("promote", "taken.run_at, ", "null, "),),
    ),
    Mutant(
        "an error of a counter can stop a worker", "G13", f"{COUNTING}::test_a_counter_that_fails_fails_alone",
        (Patch("telemetry/events.py", "except Exception:  # a listener", "except ZeroDivisionError:  # a listener"),),
    ),
    Mutant(
        "an error of a tracer can stop a worker", "G13", f"{TRACING}::test_m4_a_tracer_that_fails_costs_a_span_and_no_job",
        (Patch("telemetry/tracing.py", "    except Exception:\n", "    except ZeroDivisionError:\n"),),
    ),
    Mutant(
        "an attempt does not know the one before it", "G12", f"{TRACING}::test_a_retry_is_linked_to_the_attempt_before_and_s10_tells_no_text_of_its_error",
        (sql("claim", "split_part(job.trace, E'\\n', 3)", "split_part(job.trace, E'\\n', 2)"),),
    ),
    Mutant(
        "a key of one queue is told figures of another", "G15",
        "tests/grpc/test_access.py::test_s2_a_key_of_one_queue_gets_no_figures_of_anothers_leases",
        (Patch("server/grpc/sessions/worker_service.py", "for one in named if one.job_id in theirs]", "for one in named]"),),
    ),
    Mutant(
        "a worker over a server measures no pickup", "G8",
        "tests/remote/test_metrics.py::test_pickups_recoveries_and_zombies_are_measured",
        (Patch("remote/call_messages.py", 'job.lease_ms, job.HasField("pickup_us")', "job.lease_ms, False"),),
    ),
    Mutant(
        "a claim over a server is not in the trace of its jobs", "G12",
        "tests/remote/test_metrics.py::test_a_claim_is_part_of_its_jobs_trace",
        (Patch("server/grpc/sessions/assigner.py", "trace=request.trace", "trace=None"),),
    ),
)  # fmt: skip
