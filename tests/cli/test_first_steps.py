"""What a newcomer types first."""

from faultline import Faultline, __version__
from faultline.worker.options import queues_of, worker_config


def test_a_worker_that_is_told_no_queues_serves_those_its_tasks_name():
    app = Faultline("dbname=shop")

    @app.task(queue="billing")
    def charge() -> None: ...

    @app.task
    def ping() -> None: ...

    assert list(worker_config(queues_of(app.registry)).queues) == ["billing", "default"]


def test_faultline_alone_prints_its_help_as_it_stands(run):
    result = run()

    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: faultline")
    assert "\n  worker " in result.stdout


def test_a_group_alone_prints_its_help_too(run):
    result = run("jobs")

    assert result.exit_code == 0
    assert "\n  list " in result.stdout


def test_the_version_can_be_asked_for_in_the_usual_way(run):
    assert run("--version").stdout == f"faultline {__version__}\n"
