"""A worker of the suite: `python -m proof.failpoints.worker NAME`, with all that belongs to it."""

import asyncio
import logging
import sys

from faultline.config import Settings, WorkerConfig
from faultline.runtime.run_worker import work
from proof.failpoints.app import app
from proof.failpoints.timing import GRACE, LEASE


def main() -> int:
    logging.basicConfig(level=logging.WARNING)
    config = WorkerConfig(jobs_max=8, children_max=1, suspects_max=2, lease_for=LEASE, grace=GRACE)
    return asyncio.run(work(app.registry, Settings.read(), config, name=sys.argv[1], signals=True))


if __name__ == "__main__":
    sys.exit(main())
