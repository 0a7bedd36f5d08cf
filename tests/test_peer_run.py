"""The comparison takes its orders well, and what it writes names no machine."""

import platform
import sys

import pytest

from benchmarks.peers import options, places, runner
from benchmarks.peers.peer import Peer
from benchmarks.peers.pickup import percentile


def test_a_run_measures_rates_and_times_unless_it_is_told_otherwise():
    asked = options.read([])

    assert asked.phases == ("single", "drain1", "drain2", "latency")
    assert asked.out == places.RESULTS / "peers.json"


def test_failures_go_to_a_file_of_their_own():
    assert options.read(["--failures"]).out == places.RESULTS / "peers-failures.json"


def test_handlers_that_insert_a_row_go_to_a_file_of_their_own():
    asked = options.read(["--one-row"])

    assert (asked.phases, asked.out) == (("one_row",), places.RESULTS / "peers-one-row.json")
    assert options.read(["--phases", "drain1,one_row"]).out == places.RESULTS / "peers.json"


@pytest.mark.parametrize(
    ("meta", "phase", "there"),
    [({}, "drain1", True), ({}, "one_row", False), ({"phases": ["one_row"]}, "one_row", True),
     ({"phases": ["one_row"]}, "drain1", False)],
)  # fmt: skip
def test_a_system_is_measured_in_its_own_phases(meta, phase, there):
    peer = Peer.__new__(Peer)
    peer.meta = meta

    assert peer.takes_part(phase) == there


@pytest.mark.parametrize("words", [["--phases", "drain9"], ["--systems", "unknown"]])
def test_what_does_not_exist_is_refused(words, capsys):
    with pytest.raises(SystemExit):
        options.read(words)

    assert "there is no" in capsys.readouterr().err


def test_every_phase_that_may_be_asked_for_is_there():
    assert set(options.THROUGHPUT + options.STEADY + options.ONE_ROW) == set(runner.STEPS)


def test_what_is_written_names_neither_the_machine_nor_its_folders():
    host = platform.node()

    said = runner.anonymous(f"w1@{host} {host}:4711 {places.ROOT}/x {places.HOME}/y {sys.base_prefix}/z")

    assert said == "w1@host host:4711 $ROOT/x $BENCH_HOME/y $PYTHON/z"


def test_the_percentile_of_a_few_values_is_one_of_them():
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.5) == 3.0
    assert percentile([1.0], 0.99) == 1.0
