"""`make migrate`: bring the database at hand to this version, whichever it is.

In this order: the one FAULTLINE_DSN names, the one of a `faultline dev` that runs in this folder, the one of
compose.yaml where that is up. COMPOSE says how Compose is called here: `docker compose`, `podman-compose`.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from faultline.cli.serve.dev_server import running_dsn

FAULTLINE = Path(sys.executable).with_name("faultline")
NOTHING = """\
make migrate: no database is at hand. One of:
  FAULTLINE_DSN=postgresql://... make migrate     a PostgreSQL of your own
  faultline dev                                   in another terminal, in this folder
  {compose} up -d --build                    the whole installation of compose.yaml"""


def main(words: list[str]) -> int:
    compose = shlex.split(os.environ.get("COMPOSE") or "docker compose")
    if os.environ.get("FAULTLINE_DSN") or running_dsn():
        return subprocess.run([FAULTLINE, "migrate", *words], check=False).returncode
    if is_up(compose):
        return subprocess.run([*compose, "run", "--rm", "migrate"], check=False).returncode
    print(NOTHING.format(compose=shlex.join(compose)), file=sys.stderr)
    return 1


def is_up(compose: list[str]) -> bool:
    """Whether containers of compose.yaml are there, as far as Compose can be asked."""
    try:
        told = subprocess.run(
            [*compose, "ps", "--quiet"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return told.returncode == 0 and bool(told.stdout.strip())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
