"""The one PostgreSQL cluster and the one redis that every system uses, for as long as a run lasts."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.peers import places
from benchmarks.peers.install import say

CONFIG = f"""
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
port = {places.PGPORT}
fsync = on
synchronous_commit = on
full_page_writes = on
shared_buffers = 1GB
max_wal_size = 8GB
max_connections = 300
track_commit_timestamp = on
autovacuum = on
logging_collector = off
"""


@contextmanager
def services() -> Iterator[None]:
    """PostgreSQL and, where its server is installed, redis; both are stopped at the end."""
    start_postgres()
    try:
        with redis():
            yield
    finally:
        run_as_owner("pg_ctl", "-m", "fast", "-w", "stop")


def start_postgres() -> None:
    if not (places.PGDATA / "PG_VERSION").exists():
        make_cluster()
    try:
        run_as_owner("pg_ctl", "status")  # left over from a run that was killed
    except subprocess.CalledProcessError:
        run_as_owner("pg_ctl", "-w", "-l", str(places.PGDATA / "server.log"), "start")


def make_cluster() -> None:
    places.PGDATA.mkdir(parents=True, exist_ok=True)
    if owner := other_owner():
        shutil.chown(places.PGDATA, owner)
    run_as_owner("initdb", "-U", "bench", "--auth=trust", "-E", "UTF8", "--locale=C")
    with (places.PGDATA / "postgresql.conf").open("a") as config:
        config.write(CONFIG)


def other_owner() -> str | None:
    """Whom PostgreSQL runs as when we are root, which it refuses to be."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    wanted = [os.environ.get("BENCH_PG_USER", ""), "postgres", "nobody"]
    return next(name for name in wanted if name in known)


def run_as_owner(program: str, *words: str) -> None:
    owner = other_owner()
    subprocess.run(
        [str(places.pg_bin() / program), "-D", str(places.PGDATA), *words],
        check=True, cwd="/", stdout=subprocess.DEVNULL,
        user=owner, group=pwd.getpwnam(owner).pw_gid if owner else None, extra_groups=[] if owner else None,
    )  # fmt: skip


@contextmanager
def redis() -> Iterator[None]:
    """A redis with appendonly on, fsync each second."""
    if not shutil.which("redis-server"):
        say(
            "there is no redis-server (Debian: apt install redis-server): the systems on redis will be absent"
        )
        yield
        return
    places.REDIS_DIR.mkdir(exist_ok=True)
    with (places.REDIS_DIR / "redis.log").open("w") as log:
        server = subprocess.Popen(
            ["redis-server", "--port", str(places.REDIS_PORT), "--bind", "127.0.0.1", "--dir",
             str(places.REDIS_DIR), "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""],
            stdout=log, stderr=log,
        )  # fmt: skip
    places.REDIS_PID.write_text(str(server.pid))
    try:
        yield
    finally:
        server.terminate()
        server.wait()
        places.REDIS_PID.unlink()
