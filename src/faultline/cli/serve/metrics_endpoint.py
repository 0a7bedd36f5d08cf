"""A worker's /metrics: its figures, for one process or for all that a supervisor runs."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from faultline.metrics.endpoint import MetricsAddress, serving
from faultline.metrics.event_counter import counting
from faultline.metrics.process_group import ProcessGroup, writing
from faultline.metrics.prometheus import need_client, render


@contextlib.contextmanager
def scraped(address: MetricsAddress) -> Iterator[None]:
    """Count, and serve the counts, while the block runs."""
    need_client()
    figures = counting().figures

    async def scrape(accept: str) -> tuple[bytes, str]:
        return render(figures.snapshot(), accept)

    with serving(address, scrape):
        yield


class ScrapedGroup:
    """The folder of the figures of a group's processes, and the list of living ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.living: Callable[[], set[int]] = set


@contextlib.contextmanager
def group_scraped(address: MetricsAddress) -> Iterator[ScrapedGroup]:
    """The same for a supervisor: one page for all its processes."""
    need_client()
    own = counting().figures
    with tempfile.TemporaryDirectory(prefix="faultline-figures-") as folder:
        told = ScrapedGroup(Path(folder))
        group = ProcessGroup(told.folder, own, lambda: told.living())

        async def scrape(accept: str) -> tuple[bytes, str]:
            return render(group.snapshot(), accept)

        with serving(address, scrape):
            yield told


@contextlib.contextmanager
def figures_written(folder: Path) -> Iterator[None]:
    """The same for one process of the group: it counts, and writes its figures for the supervisor."""
    with writing(folder, counting().figures):
        yield
