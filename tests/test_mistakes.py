"""A newcomer's mistake in Python is refused at the call, in words that name the way out."""

# mypy: disable-error-code="arg-type,call-arg,call-overload,dict-item,list-item,misc"

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from faultline import Constant, Exponential, Faultline, Retry, bury
from faultline.config import Settings
from faultline.errors import BadName, ConfigError, FaultlineError, InputError, OutOfBounds, UnknownTask
from faultline.job import Job, JobState, read_state

app = Faultline("host=127.0.0.1 port=1 dbname=nowhere")


@app.task
def charge(order_id: int) -> None: ...


NAIVE = datetime(2030, 1, 1, tzinfo=UTC).replace(tzinfo=None)


class Order:
    def __init__(self, number: int) -> None:
        self.number = number


def task(**options):
    def made() -> None: ...

    return Faultline("dbname=shop").task(**options)(made)


def annotated(hint):
    def handler(order) -> None: ...

    handler.__annotations__["order"] = hint
    return Faultline("dbname=shop").task(handler)


def mistakes():
    return {
        "a mistyped option": (lambda: task(qeue="billing"), ConfigError, "did you mean queue?"),
        "an option of another library": (
            lambda: task(max_retries=3), ConfigError, "did you mean max_attempts?",
        ),
        "an option of a job": (lambda: task(key="order-7"), ConfigError, r"\.using\(key=\.\.\.\)"),
        "an option without a name": (
            lambda: app.task("billing"), ConfigError, r'@app.task\(queue="billing"\)',
        ),
        "two functions": (lambda: app.task(print, len), ConfigError, "takes one function"),
        "a number as a timeout": (lambda: task(timeout=30), OutOfBounds, r"timedelta\(seconds=30\); got 30"),
        "a number as a retry": (lambda: task(retry=3), ConfigError, "max_attempts=3"),
        "a class as a retry": (lambda: task(retry=Exponential), ConfigError, r"Exponential\(\)"),
        "Exponential(first=5)": (lambda: Exponential(first=5), ConfigError, r"timedelta\(seconds=5\); got 5"),
        "Exponential(cap='1h')": (lambda: Exponential(cap="1h"), ConfigError, "cap is a timedelta"),
        "Exponential(factor='2')": (lambda: Exponential(factor="2"), ConfigError, "factor is a number"),
        "Constant(5)": (lambda: Constant(5), ConfigError, r"timedelta\(seconds=5\)"),
        "Retry(on=ValueError)": (lambda: Retry(on=ValueError), ConfigError, r"on=\{ValueError: bury\}"),
        "Retry(on={ValueError: 'bury'})": (
            lambda: Retry(on={ValueError: "bury"}), ConfigError, "faultline.bury, without quotes",
        ),
        "SQLAlchemy's URL": (
            lambda: Faultline("postgresql+asyncpg://app:hush@db/shop"),
            ConfigError,
            "SQLAlchemy's form of a URL; Faultline takes it without that: postgresql://app@db/shop",
        ),
        "another database": (lambda: Faultline("mysql://db/shop"), ConfigError, "works on PostgreSQL"),
        "no DSN at all": (lambda: Faultline("localhost/shop").get(1), ConfigError, "neither a URL"),
        "a number as a DSN": (lambda: Faultline(5432), ConfigError, "a DSN is a str"),
        "in the environment": (
            lambda: Settings.read(environment={"FAULTLINE_DSN": "postgresql+psycopg2://db/shop"}),
            ConfigError,
            "SQLAlchemy",
        ),
        "a mistyped option of using": (
            lambda: charge.using(prio=5), InputError, "using has no option 'prio'; did you mean priority?",
        ),
        "the decorator's word in using": (
            lambda: charge.using(lease_for=timedelta(minutes=1)), InputError, "did you mean lease?",
        ),
        "using's option by another name": (
            lambda: charge.using(countdown=5), InputError, "did you mean delay?",
        ),
        "using's options without names": (lambda: charge.using("mail"), TypeError, "positional"),
        "a mistyped filter": (
            lambda: app.jobs(status="dead"), InputError, "jobs has no option 'status'; did you mean state?",
        ),
        "a filter that is none": (
            lambda: app.jobs(elephant=1), InputError, r"'elephant'\. It takes state, queue",
        ),
        "a mistyped filter, async": (
            lambda: asyncio.run(app.ajobs(status="dead")), InputError, "ajobs has no option 'status'",
        ),
        "a mistyped option of the app": (
            lambda: Faultline(dns="dbname=shop"), ConfigError, "has no option 'dns'; did you mean dsn?",
        ),
        "an option of a function that has no name": (
            lambda: app.task(max_attempts="3")(lambda: 0), OutOfBounds, "max_attempts is",
        ),
        "a function that has no name": (lambda: app.task(lambda: 0), BadName, "name"),
        "an empty key": (lambda: charge.using(key=""), BadName, "a key is not empty: .* Leave it out"),
        "a naive moment": (lambda: charge.using(run_at=NAIVE), OutOfBounds, "needs a time zone"),
        "a number as a delay": (lambda: charge.using(delay=5), OutOfBounds, r"timedelta\(seconds=5\)"),
        "dicts for jobs": (lambda: app.enqueue_many([{"order_id": 7}]), InputError, "task.new.*got a dict"),
        "one dict for jobs": (lambda: charge.enqueue_many({"order_id": 7}), InputError, "got a dict"),
        "one job for jobs": (
            lambda: app.enqueue_many(charge.new(order_id=7)), InputError, "put it in a list",
        ),
        "nothing for jobs": (lambda: app.enqueue_many(None), InputError, "got a NoneType"),
        "a class of one's own": (
            lambda: annotated(Order), ConfigError, "annotated Order, which .* pass the id",
        ),
        "a list of them": (lambda: annotated(list[Order]), ConfigError, "cannot be read back from JSON. Use"),
        "a union of them": (lambda: annotated(int | Order), ConfigError, "cannot be read back from JSON"),
        "a moment or a day": (lambda: annotated(datetime | timedelta), ConfigError, "cannot be read back"),
        "a number for a type": (lambda: annotated(7), ConfigError, "is annotated 7"),
        "an id that is none": (lambda: app.get("seven"), OutOfBounds, "a job's id is a whole number"),
        "no id": (lambda: app.cancel(None), OutOfBounds, "a job's id is a whole number"),
        "a timeout in words": (lambda: charge.handle(1).result(timeout="10s"), OutOfBounds, "of seconds"),
        "a state": (lambda: app.jobs(state="ded"), OutOfBounds, "did you mean dead?"),
        "a state by another name": (lambda: app.jobs(state="scheduled"), OutOfBounds, "did you mean queued?"),
        "no connection": (lambda: charge.enqueue_in("dbname=shop", 7), InputError, "first, not a str"),
        "a task": (lambda: app.registry.find("chrage"), UnknownTask, r"did you mean charge"),
    }  # fmt: skip


MISTAKES = mistakes()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_at_the_door(mistake):
    make, kind, said = MISTAKES[mistake]

    with pytest.raises(kind, match=said) as refused:
        make()

    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("name", ["delay", "apply_async", "send", "defer"])
def test_a_method_of_another_library_is_told_by_its_name_here(name):
    with pytest.raises(AttributeError, match=r"it is called .*enqueue\("):
        getattr(charge, name)
    assert not hasattr(charge, "no_such_thing")


def test_what_is_right_stays_right():
    assert Exponential(first=timedelta(seconds=5)).delay(1, lambda: 0.0) == timedelta(seconds=5)
    assert Retry(on={ValueError: bury}).word_for(ValueError()) is bury
    assert annotated(object).new(order=[1]).args == '{"order":[1]}'
    for dsn in (
        "postgresql://db/shop",
        "postgres://db/shop",
        "dbname=shop",
        "host=/tmp options='-c a=b://c'",
    ):
        assert Faultline(dsn).settings.dsn == dsn


def test_a_job_made_by_hand_says_where_handlers_run():
    job = Job(7, "charge", "billing", 1, 10, 0, 3, None, datetime(2026, 1, 1, tzinfo=UTC))

    with pytest.raises(FaultlineError, match="Run the handler in a worker") as refused:
        job.complete()

    assert "testing" not in str(refused.value)


def test_every_state_is_one_that_the_database_tells():
    assert [read_state(str(state)) for state in JobState] == list(JobState)
    assert "waiting" not in list(JobState)
