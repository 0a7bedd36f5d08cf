"""A task is a named handler; the registry knows the names and imports nothing."""

import sys
from datetime import timedelta
from functools import partial, wraps
from typing import Annotated

import pytest

from faultline.bounds import check_task_name
from faultline.errors import BadName, ConfigError, OutOfBounds, UnknownTask
from faultline.job import Job
from faultline.retry import Constant, Retry
from faultline.task import Registry, spec_of


def plain(order_id: int) -> None: ...
def with_job(job: Job, order_id: int) -> None: ...
def with_text_annotation(job: "Job", order_id: int) -> None: ...
def with_extras(job: Annotated[Job, "x"], order_id: int) -> None: ...
def with_another_name(this: Job, order_id: int) -> None: ...
async def asynchronous(job: Job, order_id: int) -> None: ...


@pytest.mark.parametrize(
    "handler", [with_job, with_text_annotation, with_extras, with_another_name, asynchronous]
)
def test_a_first_parameter_annotated_job_is_given_the_job(handler):
    spec = spec_of(handler)

    assert spec.takes_job
    assert spec.codec.encode((7,), {}) == '{"order_id":7}'


def test_a_handler_may_do_without_the_job():
    spec = spec_of(plain)

    assert not spec.takes_job
    assert spec.codec.encode((7,), {}) == '{"order_id":7}'


def test_a_job_that_does_not_come_first_is_refused():
    def late(order_id: int, job: Job) -> None: ...
    def by_name(*, job: Job) -> None: ...

    for handler in (late, by_name):
        with pytest.raises(ConfigError, match="`job: Job` must be the first parameter"):
            spec_of(handler)


def test_a_first_parameter_called_job_must_say_what_it_is():
    with pytest.raises(ConfigError, match="Annotate it `job: Job`"):
        spec_of(lambda job: None, name="t")


def test_coroutine_functions_are_known_as_such():
    class Caller:
        async def __call__(self, order_id: int) -> None: ...

    @wraps(asynchronous)
    async def wrapped(*args, **kwargs): ...

    assert spec_of(asynchronous).is_async
    assert spec_of(Caller(), name="caller").is_async
    assert spec_of(wrapped).is_async
    assert spec_of(partial(asynchronous), name="part").is_async
    assert not spec_of(plain).is_async


def test_generators_and_classes_are_no_handlers():
    def generator():
        yield

    async def async_generator():
        yield

    for handler in (generator, async_generator):
        with pytest.raises(ConfigError, match="instead of yielding"):
            spec_of(handler)
    with pytest.raises(ConfigError, match="goes on a function"):
        spec_of(dict)


def test_a_method_is_no_handler():
    class Shop:
        def charge(self, order_id: int) -> None: ...

    with pytest.raises(ConfigError, match="is on a method"):
        spec_of(Shop.charge)
    assert spec_of(Shop().charge).name == "charge"


def test_a_task_is_called_like_its_function_unless_named():
    assert spec_of(plain).name == "plain"
    assert spec_of(plain, name="shop.plain").name == "shop.plain"
    with pytest.raises(BadName, match=r"contains '<'"):
        spec_of(lambda: None)


def test_options_are_checked_at_the_definition():
    for options in (
        {"max_attempts": 0},
        {"priority": 1000},
        {"timeout": timedelta(0)},
        {"lease_for": timedelta(days=9)},
    ):
        with pytest.raises(OutOfBounds):
            spec_of(plain, **options)
    with pytest.raises(BadName):
        spec_of(plain, queue="a b")
    with pytest.raises(ConfigError):
        spec_of(plain, retry=5)  # type: ignore[arg-type]


def test_where_a_handler_runs_follows_from_its_kind_unless_it_says_so():
    assert spec_of(plain).run == spec_of(plain, run="thread").run == "thread"
    assert spec_of(asynchronous).run == spec_of(asynchronous, run="loop").run == "loop"
    assert spec_of(plain, run="process").run == spec_of(asynchronous, run="process").run == "process"


@pytest.mark.parametrize(
    ("handler", "run", "why"),
    [
        (plain, "fork", "run is loop, thread or process; got 'fork'"),
        (plain, "", "run is loop, thread or process; got ''"),
        (plain, 5, "run is loop, thread or process"),
        (plain, ["process"], "run is loop, thread or process"),
        (plain, "loop", "would stop the loop"),
        (asynchronous, "thread", "an async handler runs on the loop"),
    ],
)
def test_a_handler_that_would_run_nowhere_is_refused(handler, run, why):
    with pytest.raises(ConfigError, match=why):
        spec_of(handler, run=run)


def test_a_plain_policy_becomes_rules():
    policy = Constant(timedelta(seconds=1))

    assert spec_of(plain, retry=policy).retry == Retry(policy)
    assert spec_of(plain).retry == Retry()


def test_i7_a_name_that_could_be_imported_is_only_a_name():
    registry = Registry()
    registry.add(spec_of(plain))
    before = set(sys.modules)

    for name in ("os.system", "this", "antigravity.fly", "__import__", "plai"):
        assert check_task_name(name) == name
        with pytest.raises(UnknownTask, match=r"no task is called .* here; .*Import the module"):
            registry.find(name)

    assert set(sys.modules) == before


def test_i7_names_that_are_no_names_are_refused():
    for name in ("../../etc/passwd", b"\x80\x04pickle", "os.system('true')"):
        with pytest.raises(BadName):
            check_task_name(name)  # type: ignore[arg-type]


def test_a_near_miss_is_answered_with_the_name_meant():
    registry = Registry()
    registry.add(spec_of(plain, name="send_receipt"))

    with pytest.raises(UnknownTask, match="did you mean send_receipt"):
        registry.find("send_reciept")


def test_two_tasks_of_one_name_are_refused():
    registry = Registry()
    registry.add(spec_of(plain))

    with pytest.raises(ConfigError, match=r"two tasks are called plain.*name="):
        registry.add(spec_of(with_job, name="plain"))

    assert registry.find("plain").handler is plain
    assert len(registry) == 1
    assert "plain" in registry
    assert [spec.name for spec in registry] == ["plain"]
