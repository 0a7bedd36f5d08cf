"""A worker that is scraped: its figures at /metrics, for one process or for all that a supervisor runs."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from faultline.exporters.counting import counting
from faultline.exporters.endpoint import Address, serving
from faultline.exporters.group import Group, writing
from faultline.exporters.prometheus import need_client, render


@contextlib.contextmanager
def scraped(address: Address) -> Iterator[None]:
    """Count, and serve what was counted, while the block runs."""
    need_client()
    figures = counting().figures

    async def scrape(accept: str) -> tuple[bytes, str]:
        return render(figures.snapshot(), accept)

    with serving(address, scrape):
        yield


class ScrapedGroup:
    """Where the processes of a group leave their figures, and which of them live."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.living: Callable[[], set[int]] = set


@contextlib.contextmanager
def group_scraped(address: Address) -> Iterator[ScrapedGroup]:
    """The same for a supervisor: one page for all its processes."""
    need_client()
    own = counting().figures
    with tempfile.TemporaryDirectory(prefix="faultline-figures-") as folder:
        told = ScrapedGroup(Path(folder))
        group = Group(told.folder, own, lambda: told.living())

        async def scrape(accept: str) -> tuple[bytes, str]:
            return render(group.snapshot(), accept)

        with serving(address, scrape):
            yield told


@contextlib.contextmanager
def figures_written(folder: Path) -> Iterator[None]:
    """The same for one of its processes: it counts, and leaves its figures where they are looked for."""
    with writing(folder, counting().figures):
        yield
