"""`faultline dev`: nothing prepared, a database and a worker; Ctrl-C, and nothing is left running."""

import os
import signal
from pathlib import Path

from faultline.cli.dev_server import running_dsn


def test_dev_brings_a_database_that_other_commands_in_the_folder_find(start, run, shop):
    dev = start("dev", "shop_under_test:app", "--quiet")
    while (dsn := running_dsn()) is None or run("migrate", "--check").exit_code:
        assert dev.poll() is None, dev.communicate()

    job = run("enqueue", "greet", '{"name": "Ada"}', "--quiet").stdout.strip()
    while "succeeded" not in run("jobs", "show", job).stdout:
        assert dev.poll() is None, dev.communicate()
    dev.send_signal(signal.SIGINT)
    _, said = dev.communicate(timeout=30)

    assert dev.returncode == 0, said
    assert "execution_finished" in said
    assert running_dsn() is None
    assert run("jobs", "list").exit_code == 2
    assert not Path(dsn.split("host=")[1].split()[0]).exists()


def test_dev_with_a_wrong_app_leaves_no_server_running(start, shop):
    dev = start("dev", "shop_under_test:nope")
    _, said = dev.communicate(timeout=60)

    assert dev.returncode == 2
    assert "has no nope" in said.splitlines()[-1]
    assert running_dsn(shop / ".faultline") is None
    assert (shop / ".faultline" / "pg").is_dir()
    assert os.listdir(shop / ".faultline")  # noqa: PTH208
