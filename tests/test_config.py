"""Settings are checked together, where they are made, and a DSN is never shown with its secrets."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

import faultline
from faultline.config import SETTINGS, Settings, WorkerConfig, mistyped, read_queues, redact
from faultline.errors import BadName, ConfigError, InputError, OutOfBounds

SECRET = "s3cr3t"


def seconds(number):
    return timedelta(seconds=number)


def test_arguments_come_before_the_environment():
    environment = {"FAULTLINE_DSN": "dbname=a", "FAULTLINE_POOLER": "transaction", "FAULTLINE_LOG": "debug"}

    read = Settings.read(dsn="dbname=b", environment=environment)

    assert (read.dsn, read.pooler, read.log) == ("dbname=b", "transaction", "debug")


def test_without_a_dsn_the_message_says_how_to_give_one():
    with pytest.raises(ConfigError, match="set FAULTLINE_DSN"):
        Settings.read(environment={}).require_dsn()


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_dsn_in_the_environment_is_refused_as_an_empty_argument_is(empty):
    """A shell variable that is not set must not mean another database."""
    with pytest.raises(ConfigError, match=r"FAULTLINE_DSN is empty; .*unset it"):
        Settings.read(environment={"FAULTLINE_DSN": empty})
    with pytest.raises(ConfigError, match="dsn is empty"):
        Settings.read(dsn=empty, environment={"FAULTLINE_DSN": "dbname=shop"})

    assert Settings.read(dsn="dbname=shop", environment={"FAULTLINE_DSN": empty}).dsn == "dbname=shop"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("FAULTLINE_DNS", "FAULTLINE_DSN"),
        ("FAULTLINE_APIKEY", "FAULTLINE_API_KEY"),
        ("FAULTLINE_ALIVE_FIEL", "FAULTLINE_ALIVE_FILE"),
        ("faultline_dsn", "FAULTLINE_DSN"),
    ],
)
def test_a_variable_whose_name_is_nearly_a_setting_is_told(name, meant):
    assert mistyped({name: "hush"}) == {name: meant}


def test_a_variable_that_is_another_program_s_is_passed_over():
    """Kubernetes sets such variables for a service of this name, and units and tests have their own."""
    foreign = (
        "PORT",
        "SERVICE_HOST",
        "SERVICE_PORT",
        "PORT_8000_TCP_ADDR",
        "SERVER_PORT",
        "SERVER_SERVICE_HOST",
    )
    ours = ("APP", "FLAGS", "QUEUES", "REQUESTS", "TOOLS", "TEST_DSN", "TEST_ORDER", "BENCH_FOLDER")

    assert mistyped({f"FAULTLINE_{name}": "" for name in (*foreign, *ours)}) == {}
    assert mistyped(dict.fromkeys(SETTINGS, "")) == {}
    assert mistyped({"PATH": "", "FAULTLINE": "", "FAULTLINE_": ""}) == {}


def test_every_variable_that_is_read_is_a_setting():
    package = Path(faultline.__file__).parent
    read = {
        name
        for file in package.rglob("*.py")
        for name in re.findall(r"""(?:get|pop|environ)[(\[]"(FAULTLINE_[A-Z_]+)""", file.read_text())
    }

    assert {"FAULTLINE_DSN", "FAULTLINE_DEBUG", "FAULTLINE_TLS_CA"} <= read
    assert read - {"FAULTLINE_DRILL_WORKER"} <= set(SETTINGS)


def test_without_a_dsn_the_message_names_the_variable_that_was_nearly_one(monkeypatch):
    monkeypatch.setenv("FAULTLINE_DNS", "postgresql://app:hush@db/shop")

    with pytest.raises(
        ConfigError, match="FAULTLINE_DNS is no setting; did you mean FAULTLINE_DSN"
    ) as refused:
        Settings.read(environment={}).require_dsn()

    assert "hush" not in str(refused.value)


def test_settings_do_not_show_their_dsn():
    assert SECRET not in repr(Settings(dsn=f"postgresql://app:{SECRET}@db/shop"))


@pytest.mark.parametrize("environment", [{"FAULTLINE_POOLER": "session"}, {"FAULTLINE_LOG": "loud"}])
def test_a_setting_outside_its_choices_is_refused_by_name(environment):
    with pytest.raises(ConfigError, match=next(iter(environment))):
        Settings.read(environment=environment)


def test_the_defaults_of_a_worker_go_together():
    config = WorkerConfig()

    assert config.lease_for == seconds(15)
    assert config.tick == seconds(1)
    assert config.threads_max == config.jobs_max == 10
    assert dict(config.queues) == {"default": None}


def test_there_is_a_child_for_each_cpu_and_never_more_than_jobs_at_once(monkeypatch):
    monkeypatch.setattr("faultline.config._cpus", lambda: 4)

    assert WorkerConfig().children_max == 4
    assert WorkerConfig(jobs_max=3).children_max == 3
    assert WorkerConfig(children_max=2).children_max == 2


def test_the_tick_follows_a_short_lease():
    config = WorkerConfig(lease_for=seconds(1))

    assert config.tick == seconds(0.25)


REFUSED = [
    ({"tick": seconds(15)}, "tick must be shorter than a lease"),
    ({"prefetch_for": seconds(8)}, "prefetch_for must be under half a lease"),
    ({"settle_every": seconds(4)}, "settle_every must be under a quarter"),
    ({"poll_every": seconds(0)}, "poll_every must be at least 1ms"),
    ({"grace": seconds(-1)}, "grace cannot be negative"),
    ({"jobs_max": 0}, "jobs_max is a whole number from 1"),
    ({"jobs_max": True}, "jobs_max is a whole number"),
    ({"jobs_max": "10"}, "jobs_max is a whole number from 1 to 10000; got '10'"),
    ({"job_max": 3}, "has no setting 'job_max'; did you mean jobs_max"),
    ({"nonsense": 3}, "has no setting 'nonsense'. It has queues"),
    ({"queues": ["a"]}, "queues names each queue with the most jobs"),
    ({"queues": "a"}, "most jobs of it to run at once, or None"),
    ({"queues": {"a": "5"}}, "queue a: at most how many"),
    ({"lease_for": 5}, "lease_for is a timedelta, such as"),
    ({"grace": "25s"}, "grace is a timedelta"),
    ({"threads_max": -1}, "threads_max"),
    ({"children_max": -1}, "children_max"),
    ({"recycle_after": 0}, "recycle_after"),
    ({"buffer_max": 0}, "buffer_max"),
    ({"settle_batch": 0}, "settle_batch"),
    ({"queues": {}}, "nothing to do"),
    ({"queues": {"a": 0}}, "stand still"),
]


@pytest.mark.parametrize(("options", "reason"), REFUSED, ids=[case[1] for case in REFUSED])
def test_settings_that_cannot_work_are_refused_with_the_reason(options, reason):
    with pytest.raises(ConfigError, match=reason):
        WorkerConfig(**options)


def test_a_workers_lease_timeout_and_queues_keep_the_bounds_of_jobs():
    with pytest.raises(OutOfBounds, match="lease_for"):
        WorkerConfig(lease_for=seconds(0.1))
    with pytest.raises(OutOfBounds, match="timeout"):
        WorkerConfig(timeout=seconds(0))
    with pytest.raises(BadName):
        WorkerConfig(queues={"*": None})


def test_the_queues_of_a_config_cannot_be_changed():
    queues: dict[str, int | None] = {"a": 1}
    config = WorkerConfig(queues=queues)
    queues["b"] = 2

    assert dict(config.queues) == {"a": 1}


def test_queues_are_read_from_a_command_line():
    assert read_queues(["billing=5", "mail", "a.b=1"]) == {"billing": 5, "mail": None, "a.b": 1}


@pytest.mark.parametrize(
    "word", ["billing=", "billing=0", "billing=x", "billing=99999999999", "=5", "a b", "a=-1"]
)
def test_a_queue_that_cannot_be_read_is_refused(word):
    with pytest.raises(InputError):
        read_queues([word])


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        (f"postgresql://app:{SECRET}@db:5432/shop", "postgresql://app@db:5432/shop"),
        (f"postgresql://app@db/shop?password={SECRET}&options=-c{SECRET}", "postgresql://app@db/shop"),
        (f"postgres://app:{SECRET}@h1:1,h2:2/shop#x", "postgres://app@h1:1,h2:2/shop"),
        (f"postgresql://app:p@{SECRET}@db/shop", "postgresql://app@db/shop"),
        (f"postgresql://app:p/{SECRET}@db/shop", "postgresql://app@db/shop"),
        (f"postgresql://app:p?{SECRET}@db/shop", "postgresql://app@db/shop"),
        (f"postgresql:///shop?host=/tmp&password={SECRET}", "postgresql:///shop"),
        (f"postgresql://db/shop?password={SECRET}@x", "postgresql://***"),
        (f"postgresql://[::1]:5432/shop?password={SECRET}", "postgresql://[::1]:5432/shop"),
        (f"host=db user=app password={SECRET} dbname=shop", "user=app host=db dbname=shop"),
        (f"host = db password = 'a b \\' {SECRET}' port=5", "host=db port=5"),
        (f"host=db password={SECRET}\\ x options='-c {SECRET}'", "host=db"),
        (f"dbname=postgresql://app:{SECRET}@db/shop", "dbname=postgresql://app@db/shop"),
        (f"dbname='host=x password={SECRET}' port=5", "port=5 dbname=host=x"),
        (f"host=db password='{SECRET}", "***"),
        (SECRET, "***"),
        ("", ""),
    ],
)
def test_a_dsn_is_shown_without_password_and_options(dsn, shown):
    assert redact(dsn) == shown
    assert SECRET not in redact(dsn)
