"""The machine and the server a figure was taken on; without their names."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from faultline import __version__
from faultline.store.driver.connect import connect

SETTINGS: Final = (
    "fsync", "synchronous_commit", "full_page_writes", "wal_level", "shared_buffers", "max_wal_size",
    "checkpoint_timeout", "max_connections", "autovacuum", "jit",
)  # fmt: skip


def machine(dsn: str) -> dict[str, Any]:
    """Cores, memory, versions and the settings that decide how fast a server is."""
    with connect(dsn) as conn:
        settings = {name: _show(conn, name) for name in SETTINGS}
        server_version = _show(conn, "server_version").split()[0]
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "load_before": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "faultline": __version__,
        "psycopg": version("psycopg"),
        "uvloop": _version("uvloop"),
        "postgresql": server_version,
        "settings": settings,
    }


def _show(conn: Any, name: str) -> str:
    return str(conn.execute("select current_setting(%s)", [name]).fetchone()[0])


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
