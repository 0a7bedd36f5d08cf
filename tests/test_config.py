"""Settings are checked together, where they are made, and a DSN is never shown with its secrets."""

from datetime import timedelta

import pytest

from faultline.config import Settings, WorkerConfig, read_queues, redact
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


def test_settings_do_not_show_their_dsn():
    assert SECRET not in repr(Settings(dsn=f"postgresql://app:{SECRET}@db/shop"))


@pytest.mark.parametrize("environment", [{"FAULTLINE_POOLER": "session"}, {"FAULTLINE_LOG": "loud"}])
def test_a_setting_outside_its_choices_is_refused_by_name(environment):
    with pytest.raises(ConfigError, match=next(iter(environment))):
        Settings.read(environment=environment)


def test_the_defaults_of_a_worker_go_together():
    config = WorkerConfig()

    assert config.lease_for == seconds(15)
    assert config.heartbeat_every == seconds(5)
    assert config.tick == seconds(1)
    assert config.threads_max == config.jobs_max == 10
    assert dict(config.queues) == {"default": None}


def test_there_is_a_child_for_each_cpu_and_never_more_than_jobs_at_once(monkeypatch):
    monkeypatch.setattr("faultline.config._cpus", lambda: 4)

    assert WorkerConfig().children_max == 4
    assert WorkerConfig(jobs_max=3).children_max == 3
    assert WorkerConfig(children_max=2).children_max == 2


def test_beat_and_tick_follow_a_short_lease():
    config = WorkerConfig(lease_for=seconds(1))

    assert config.heartbeat_every == seconds(1) / 3
    assert config.tick == seconds(0.25)


REFUSED = [
    ({"heartbeat_every": seconds(8)}, "outlast two heartbeats, or one lost beat would lose the job"),
    ({"tick": seconds(15)}, "tick must be shorter than a lease"),
    ({"prefetch_for": seconds(8)}, "prefetch_for must be under half a lease"),
    ({"settle_every": seconds(4)}, "settle_every must be under a quarter"),
    ({"poll_every": seconds(0)}, "poll_every must be at least 1ms"),
    ({"grace": seconds(-1)}, "grace cannot be negative"),
    ({"jobs_max": 0}, "jobs_max is a whole number from 1"),
    ({"jobs_max": True}, "jobs_max is a whole number"),
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
