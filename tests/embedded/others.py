"""Other processes that hold a server, and ways to see whether one is still there."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg

from faultline.embedded.server_folder import ServerFolder

HOLDER = Path(__file__).with_name("holder.py")
GONE_SECONDS_MAX = 20.0


class OtherProcess:
    """Another process that holds the server of a folder, until it is told to leave or is killed."""

    def __init__(self, folder: Path, python: str = sys.executable, **how: Any) -> None:
        self.process = subprocess.Popen(
            [python, str(HOLDER), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **how,
        )

    def told(self) -> dict[str, Any]:
        """What it says of the server it holds, once it holds it."""
        assert self.process.stdout
        answer: dict[str, Any] = json.loads(self.process.stdout.readline() or "{}")
        return answer

    def leave(self) -> None:
        self.process.communicate(timeout=30)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def is_gone(folder: Path) -> bool:
    """True as soon as no process of the folder's server is left, its supervisor included."""
    if not folder.exists():
        return True
    life = ServerFolder(folder).take_life(GONE_SECONDS_MAX)
    if life is not None:
        os.close(life)
    return life is not None


def supervisor_of(server_pid: int) -> int:
    """The parent of the server's first process."""
    stat = Path(f"/proc/{server_pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def answers(dsn: str) -> bool:
    with psycopg.connect(dsn) as conn:
        return conn.execute("select 1").fetchone() == (1,)
