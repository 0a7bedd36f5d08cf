"""Figures as plain numbers: bounded, and one set for several processes."""

from typing import Any

from faultline.metrics.names import METRICS, OTHER, SERIES_MAX, VALUES_MAX
from faultline.metrics.prometheus import render
from faultline.metrics.series import MetricSeries, from_json, lasting, merged, to_json


def test_s13_a_hundred_thousand_queue_names_are_a_hundred_and_other():
    figures = MetricSeries()

    for number in range(100_000):
        figures.add("leases_acquired", (f"queue-{number}",))

    series = figures.snapshot()["leases_acquired"]
    assert len(series) == VALUES_MAX["queue"] + 1
    assert series["queue-0",] == 1
    assert series[OTHER,] == 100_000 - VALUES_MAX["queue"]


def test_s13_labels_together_are_bounded_too():
    figures = MetricSeries()

    for number in range(20_000):
        figures.add("jobs_settled", (f"queue-{number % 90}", f"task-{number % 190}", "succeeded"))

    series: dict[Any, Any] = figures.snapshot()["jobs_settled"]
    assert len(series) <= SERIES_MAX + 1
    assert sum(series.values()) == 20_000
    assert series[OTHER, OTHER, "succeeded"] > 0


def test_a_histogram_has_buckets_a_count_and_a_sum():
    figures = MetricSeries()

    figures.observe("job_pickup_seconds", ("default",), [0.0005, 0.001, 0.3, 7200])

    body = render(figures.snapshot())[0].decode()
    assert 'faultline_job_pickup_seconds_bucket{le="0.001",queue="default"} 2.0' in body
    assert 'faultline_job_pickup_seconds_bucket{le="0.5",queue="default"} 3.0' in body
    assert 'faultline_job_pickup_seconds_bucket{le="+Inf",queue="default"} 4.0' in body
    assert 'faultline_job_pickup_seconds_count{queue="default"} 4.0' in body
    assert 'faultline_job_pickup_seconds_sum{queue="default"} 7200.3015' in body


def test_processes_add_up_and_the_worst_age_counts():
    one, other = MetricSeries(), MetricSeries()
    for figures, jobs, age in ((one, 3, 1.0), (other, 4, 9.0)):
        figures.add("jobs_settled", ("q", "t", "succeeded"), jobs)
        figures.observe("recovery_seconds", (), [1.0])
        figures.set("worker_jobs_in_hand", (), 2)
        figures.set("pacemaker_beat_age_seconds", (), age)

    whole: dict[str, Any] = merged([from_json(to_json(each.snapshot())) for each in (one, other)])

    assert whole["jobs_settled"]["q", "t", "succeeded"] == 7
    assert whole["recovery_seconds"][()][-1] == 2.0
    assert whole["worker_jobs_in_hand"][()] == 4
    assert whole["pacemaker_beat_age_seconds"][()] == 9.0


def test_of_a_process_that_ended_only_what_it_counted_stays():
    figures = MetricSeries()
    figures.add("retries", ("q", "t"))
    figures.set("worker_jobs_in_hand", (), 2)

    assert list(lasting(figures.snapshot())) == ["retries"]


def test_names_follow_the_conventions():
    for metric in METRICS.values():
        assert metric.full_name.startswith("faultline_")
        assert not metric.name.endswith("_total")
        assert not {"job", "job_id", "worker", "token", "claim"} & set(metric.labels)
        if "second" in metric.name:
            assert metric.name.endswith("_seconds")
        assert (metric.kind == "histogram") == bool(metric.buckets)
        assert metric.help.endswith(".")
