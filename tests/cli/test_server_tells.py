"""`faultline server` under a service manager."""

import signal

from tests.support_manager import Manager


def test_a_server_says_when_it_listens_that_its_loop_turns_and_that_it_stops(start, database):
    with Manager.at() as manager:
        server = start(
            "server", "--http", "127.0.0.1:0", "--dsn", database,
            NOTIFY_SOCKET=manager.address, WATCHDOG_USEC="200000",
        )  # fmt: skip
        assert manager.wait_for("READY").said["STATUS"].startswith("serving on 127.0.0.1:")
        manager.wait_for("WATCHDOG", more_than=1)

        server.send_signal(signal.SIGTERM)
        manager.wait_for("STOPPING")

        assert server.wait(30) == 0
        assert {word.pid for word in manager.hear()} == {server.pid}
