"""A pytest plugin that writes down the first failure: which test, in which part of it, and by what error."""

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

WITNESS = "FAULTLINE_MUTANT_WITNESS"


class Witness:
    """Keeps the first failure and counts what passed before it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._passed = 0
        self._failed: dict[str, Any] | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed and self._failed is None:
            error = call.excinfo
            self._failed = {
                "test": item.nodeid,
                "part": report.when,
                "kinds": [kind.__name__ for kind in error.type.__mro__] if error else [],
                "said": (str(error.value).strip().splitlines() or [""])[0][:200] if error else "",
            }
        self._passed += report.when == "call" and report.passed
        return report

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(json.dumps({"passed": self._passed, "failed": self._failed}))


def pytest_configure(config: pytest.Config) -> None:
    if path := os.environ.get(WITNESS):
        config.pluginmanager.register(Witness(Path(path)))
