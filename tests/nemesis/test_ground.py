"""The ground of a storm: whatever the storm does to its server, it can be brought back."""

import subprocess
import sys

import pytest

# In a process of its own: the small disk needs a mount namespace, which a process cannot leave again.
CRASHED_ON_A_FULL_DISK = """
from proof.nemesis.ground import ground

with ground() as made:
    if made.disk is None:
        print("no disk:", made.lacks["disk-full"])
        raise SystemExit
    with made.connect() as conn:
        conn.execute("checkpoint")
        conn.execute("create table storm.gone as select repeat('x', 1000) from generate_series(1, 9000)")
        conn.execute("drop table storm.gone")  # the log has to make it again before it can drop it
    made.fill_disk(True)
    made.server.halt("immediate")
    made.bring_back()
    with made.connect() as conn:
        print("back with", conn.execute("select count(*) from storm.orders").fetchone())
"""


def test_a_server_that_crashed_on_a_full_disk_is_given_room_and_comes_back():
    said = subprocess.run(
        [sys.executable, "-c", CRASHED_ON_A_FULL_DISK], capture_output=True, text=True, check=False
    )

    if said.stdout.startswith("no disk"):
        pytest.skip(said.stdout)
    assert (said.stdout, said.returncode) == ("back with (0,)\n", 0), said.stderr
