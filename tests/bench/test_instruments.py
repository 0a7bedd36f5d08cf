"""What the bench measures with: percentiles, stamps, gauges, offered rates, the machine's facts."""

import os
import socket
import time
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from faultline.lab.bench import load
from faultline.lab.bench.bench_database import database
from faultline.lab.bench.measure.machine import machine
from faultline.lab.bench.measure.sampler import RateGauge, Sampler, Series
from faultline.lab.bench.measure.server_probe import ServerProbe
from faultline.lab.bench.measure.spread import spread
from faultline.lab.bench.measure.start_times import AllStartTimes, StartTimes
from faultline.lab.bench.measure.weight import cpu_seconds


def test_percentiles_of_a_hundred_values():
    found = spread([float(value) for value in range(101)], "ms")

    assert found == {"ms_p50": 50.0, "ms_p95": 95.0, "ms_p99": 99.0, "ms_max": 100.0}


@pytest.mark.parametrize(("values", "middle"), [([], None), ([7.0], 7.0)])
def test_percentiles_of_next_to_nothing(values, middle):
    assert spread(values, "ms")["ms_p50"] == middle


def test_boards_add_up_what_processes_noted_and_tell_when_each_job_began(tmp_path):
    first, second = StartTimes(tmp_path / "1"), StartTimes(tmp_path / "2")
    boards = AllStartTimes(tmp_path)

    first.stamp(0)
    second.stamp(2)
    late = StartTimes(tmp_path / "3")  # a process that no message announced
    late.note()

    assert boards.count == 3
    moments = boards.moments(3)
    assert moments[0] <= moments[2]
    assert moments[1] == 0
    assert abs(boards.first_at - moments[0] / 1e9) < 1


def test_a_sampler_reads_once_more_at_the_end_and_remembers_marks():
    counts = iter(range(1_000))
    with Sampler("case", [RateGauge("per_second", lambda: next(counts))], every=60.0) as sampler:
        sampler.mark("half")

    assert len(sampler.series.seconds) == 1
    assert sampler.series.values["per_second"][0] > 0
    assert [name for name, _ in sampler.series.marks] == ["half"]


def test_a_series_gives_the_known_values_of_a_stretch():
    series = Series("case")
    for at, value in ((0.0, 1.0), (1.0, None), (2.0, 3.0), (3.0, 4.0)):
        series.add(at, {"gauge": value})

    assert series.between("gauge", 0.0, 3.0) == [1.0, 3.0]
    assert series.between("unknown", 0.0, 3.0) == []


def producer():
    """A case whose app only remembers what it was given."""
    batches: list[list[Any]] = []
    case = SimpleNamespace(app=SimpleNamespace(enqueue_many=batches.append), told=lambda *said: None)
    return case, batches


def test_an_offered_rate_sends_every_job_once_at_or_after_its_moment():
    case, batches = producer()
    began = time.time_ns()

    sent = load.offer(case, 1_000, 0.2)
    load.offer(case, 1_000, 0.1, sent=sent)

    assert [new.args for batch in batches for new in batch] == [f'{{"n":{number}}}' for number in range(300)]
    assert sent.jobs == 300
    assert sent.meant_at[0] >= began
    assert list(sent.meant_at) == sorted(sent.meant_at)
    assert sent.meant_at[-1] <= time.time_ns()


def test_a_producer_that_was_held_up_sends_what_is_due_in_one_call():
    case, batches = producer()

    def slow(batch):
        batches.append(batch)
        time.sleep(0.05)

    case.app.enqueue_many = slow
    sent = load.offer(case, 1_000, 0.2)

    assert sum(map(len, batches)) == sent.jobs == 200
    assert len(batches) <= 6


def test_waiting_is_counted_from_the_moment_a_job_was_meant_to_be_sent():
    sent = load.Offered()
    sent.meant_at.extend([1_000_000, 2_000_000])

    assert sent.waits_ms([3_000_000, 0]) == [2.0]


def test_a_bench_database_is_gone_after_its_block_whatever_happened_in_it(server):
    with pytest.raises(ZeroDivisionError), database(server.dsn()) as dsn:
        name = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
        raise ZeroDivisionError

    with psycopg.connect(server.dsn()) as conn:
        assert conn.execute("select from pg_database where datname = %s", [name]).fetchone() is None


def test_the_server_probe_counts_what_happened(database):
    probe = ServerProbe(database)
    before = probe.counters()
    with psycopg.connect(database) as conn:
        conn.execute("update faultline.settings set only_row = true")
    after = probe.final_counters()
    sizes = probe.sizes()
    probe.close()

    assert after["wal_bytes"] > before["wal_bytes"]
    assert after["updates"] >= before["updates"] + 1
    assert sizes["active_index_bytes"] > 0


@pytest.mark.skipif(cpu_seconds([os.getpid()]) is None, reason="this kernel does not tell")
def test_cpu_of_a_server_on_this_machine_grows(database):
    probe = ServerProbe(database)
    before = probe.cpu_seconds()
    if before is None:
        pytest.skip("the server is elsewhere")
    with psycopg.connect(database) as conn:
        conn.execute("select count(*) from generate_series(1, 300000)")
    after = probe.cpu_seconds()
    probe.close()

    assert after > before


def test_the_machine_is_described_without_its_name(database):
    found = machine(database)

    assert found["cores"] >= 1
    assert found["settings"]["fsync"] in ("on", "off")
    assert socket.gethostname() not in str(found)
