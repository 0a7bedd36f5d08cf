"""Schedules of an app: in its code, and what it asks of those in the database."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from faultline import Faultline, at, every
from faultline.errors import (
    BadArguments,
    BadName,
    ConfigError,
    FaultlineError,
    InputError,
    JobNotFound,
    OutOfBounds,
)
from faultline.retry import Exponential
from faultline.schedules import release_numbers
from faultline.store import calls
from faultline.watchdog.firings import firing_of, next_of

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def app(database):
    with Faultline(database, name="shop", release="1.2") as app:
        yield app


def report_of(app, **options):
    @app.task(**options)
    def report(customer: int = 0) -> None: ...

    return report


def tick(store):
    found = store.run(calls.due_schedules(timedelta(0)))
    store.run(calls.compute_next([next_of(due) for due in found if due.next_at is None]))
    return store.run(calls.fire([firing_of(due) for due in found if due.next_at is not None]))


def test_a_worker_tells_the_database_of_the_schedules_in_the_code(app, store):
    report = report_of(app, queue="mail", retry=Exponential(), timeout=timedelta(minutes=5))
    app.schedule("0 8 * * 1", tz="Europe/Paris", args={"customer": 7}, overlap="skip")(report)
    app.schedule(every(minutes=5), name="often", jitter=timedelta(seconds=5), missed="all")(
        report.using(priority=-5)
    )
    assert app.run_worker(queues="none", until_empty=True) == 0

    weekly, often = app.schedules.get("report"), app.schedules.get("often")
    assert (weekly.app, weekly.release, weekly.queue, weekly.overlap) == ("shop", "1.2", "mail", "skip")
    assert (weekly.args, weekly.timeout, weekly.when) == (
        '{"customer":7}', timedelta(minutes=5), "0 8 * * 1 Europe/Paris",
    )  # fmt: skip
    assert (often.priority, often.every, often.jitter) == (-5, timedelta(minutes=5), timedelta(seconds=5))


def test_a_schedule_runs_its_task(database):
    app, ran, came = Faultline(database), [], asyncio.Event()

    @app.schedule(every(seconds=1))
    @app.task
    async def tick(job_of: int = 3) -> None:
        ran.append(job_of)
        came.set()

    async def live():
        async with app.worker(), asyncio.timeout(30):
            await came.wait()
        await app.aclose()

    asyncio.run(live())
    assert ran[0] == 3


def test_a_schedule_in_no_code_is_set_looked_at_and_deleted(app, store, clock):
    report = report_of(app)
    made = app.schedules.set("r7", report, every(hours=1), args={"customer": 7})
    assert (made.state, made.app, made.when) == ("active", None, "every 1h")
    assert app.schedules.next("r7", 2) == [made.next_at, made.next_at + timedelta(hours=1)]
    handle = app.schedules.trigger("r7", "to see it")
    assert handle.info().args == {"customer": 7}
    assert app.schedules.of(handle.id).schedule == "r7"
    assert app.schedules.of(handle.id + 1) is None
    app.schedules.pause("r7")
    assert app.schedules.next("r7") == []
    app.schedules.resume("r7")
    clock.advance(hours=1)
    tick(store)
    assert [one.how for one in app.schedules.history("r7")] == ["due", "triggered"]
    assert [one.name for one in app.schedules.list()] == ["r7"]
    app.schedules.delete("r7")
    with pytest.raises(JobNotFound):
        app.schedules.get("r7")


def test_a_backfill_is_previewed_and_then_done_once(app, clock):
    report = report_of(app)
    made = app.schedules.set("daily", report, "0 3 * * *", tz="Europe/Berlin")
    since = made.moment - timedelta(days=3)
    seen = app.schedules.backfill("daily", since, preview=True)
    assert len(seen) == 3
    assert all(one.is_new and one.job_id is None for one in seen)
    assert all(one.is_new and one.job_id for one in app.schedules.backfill("daily", since))
    assert not any(one.is_new for one in app.schedules.backfill("daily", since))
    with pytest.raises(OutOfBounds, match="at most 1,000"):
        app.schedules.backfill("daily", made.moment - timedelta(days=2000))
    with pytest.raises(OutOfBounds, match="time zone"):
        app.schedules.backfill("daily", datetime(2026, 1, 1))  # noqa: DTZ001


def test_the_async_twins(app, clock):
    report = report_of(app)

    async def ask():
        schedules = app.schedules
        made = await schedules.aset("r", report, timedelta(minutes=5))
        assert await schedules.anext("r", 1) == [made.next_at]
        assert [one.name for one in await schedules.alist()] == ["r"]
        handle = await schedules.atrigger("r")
        assert (await schedules.aof(handle.id)).how == "triggered"
        assert len(await schedules.ahistory("r")) == 1
        assert len(await schedules.abackfill("r", made.moment - timedelta(minutes=11))) == 3
        await schedules.apause("r")
        await schedules.aresume("r")
        await schedules.adelete("r")
        with pytest.raises(JobNotFound):
            await schedules.aget("r")
        await app.aclose()

    asyncio.run(ask())


def test_a_mistyped_name_is_told_with_the_near_ones(app):
    app.schedules.set("nightly", report_of(app), "@daily")
    with pytest.raises(JobNotFound, match="did you mean nightly"):
        app.schedules.get("nihgtly")


@pytest.mark.parametrize(
    ("when", "options", "error", "said"),
    [
        ("0 25 * * *", {}, OutOfBounds, r"hour goes from 0 to 23\n    0 25 \* \* \*\n      \^\^"),
        ("0 0 30 2 *", {}, OutOfBounds, "never occurs"),
        ("* 2 * 3 7L", {"tz": "Europe/Berlin"}, OutOfBounds, "never occurs in Europe/Berlin"),
        ("0 3 * *", {}, OutOfBounds, "has 4"),
        ("@dayly", {}, OutOfBounds, "did you mean @daily"),
        ("0 3 * * *", {"tz": "Berlin"}, OutOfBounds, "did you mean Europe/Berlin"),
        ("0 3 * * *", {"tz": "Mars/Base"}, OutOfBounds, "no time zone"),
        (timedelta(0), {}, OutOfBounds, "from 1s to 366d"),
        (timedelta(minutes=1), {"tz": "UTC"}, InputError, "goes with a cron expression"),
        (datetime(2026, 1, 1), {}, OutOfBounds, "time zone"),  # noqa: DTZ001
        (7, {}, InputError, "got 7"),
        ("@daily", {"missed": "sometimes"}, OutOfBounds, "skip, once or all"),
        ("@daily", {"overlap": "alow"}, OutOfBounds, "did you mean allow"),
        ("@daily", {"jitter": timedelta(days=2)}, OutOfBounds, "jitter"),
        ("@daily", {"jitter": 5}, OutOfBounds, "jitter"),
        ("@daily", {"name": "a b"}, BadName, "schedule name"),
        ("@daily", {"args": {"customr": 7}}, BadArguments, "customr"),
        ("@daily", {"timezone": "UTC"}, InputError, "did you mean tz"),
    ],
)
def test_bad_input_is_refused_where_it_is_written(when, options, error, said):
    app = Faultline("dbname=nowhere")
    with pytest.raises(error, match=said):
        app.schedule(when, **options)(report_of(app))
    assert app.registry.schedules == {}


def test_a_schedule_stands_above_the_task_and_its_name_is_its_own():
    app = Faultline("dbname=nowhere")
    with pytest.raises(ConfigError, match=r"above @app\.task"):
        app.schedule("@daily")(lambda: None)  # type: ignore[type-var]
    report = app.schedule("@daily")(report_of(app))
    with pytest.raises(ConfigError, match="two schedules are called report"):
        app.schedule("@hourly")(report)
    with pytest.raises(ConfigError, match="cannot have the option key"):
        app.schedule("@hourly", name="keyed")(report.using(key="k"))
        app.registry.schedules["keyed"].document()


def test_a_release_has_numbers_and_its_app_a_name(monkeypatch, database):
    assert release_numbers("v1.10.0") > release_numbers("1.9.9") > release_numbers(1) > release_numbers(None)
    assert release_numbers("1.0.0") == release_numbers(1)
    for wrong in ("abc", "1.2-rc1", "", 1.5, True, "1." * 9, -1, 10**9, "1.1000000000"):
        with pytest.raises(ConfigError):
            Faultline("dbname=nowhere", name="shop", release=wrong)  # type: ignore[arg-type]
    with pytest.raises(BadName):
        Faultline("dbname=nowhere", name="a b")

    nameless = Faultline(database)
    nameless.schedule("@daily")(report_of(nameless))
    monkeypatch.setenv("FAULTLINE_RELEASE", "7")
    with pytest.raises(ConfigError, match="needs a name"):
        nameless.run_worker(until_empty=True)


def test_periods_and_moments_in_words():
    assert every(minutes=5) == every(timedelta(minutes=5))
    assert at(START).next_after(START) is None
    later = START + timedelta(minutes=10)
    assert every(minutes=5, starts_at=START).next_after(START + timedelta(minutes=7)) == later
    for args, options in ((), {}), (("5m",), {}), ((timedelta(1),), {"days": 1}), ((), {"days": 400}):
        with pytest.raises(FaultlineError):
            every(*args, **options)  # type: ignore[call-overload]
