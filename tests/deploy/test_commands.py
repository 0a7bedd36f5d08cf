"""Every command, flag, variable and port that the shipped files name is one that there is."""

import re
from typing import Any

import click
import pytest

from faultline.cli.root import root
from tests.deploy import shipped
from tests.deploy.shipped import ROOT, Line

FILES = [
    ROOT / "Dockerfile", ROOT / "compose.yaml", *shipped.UNITS, *shipped.MANIFESTS,
    *sorted((ROOT / "deploy/helm").rglob("*.yaml")), shipped.GUIDE,
]  # fmt: skip

OF_THE_UNITS = {"FAULTLINE_APP", "FAULTLINE_FLAGS"}
"""Variables that systemd itself puts into a command line."""

ALERTS = ROOT / "deploy/prometheus/alerts.yml"
OF_OTHERS = {53: "DNS", 3000: "Grafana", 5432: "PostgreSQL", 6432: "PgBouncer", 9090: "Prometheus"}


def understood(words: list[str]) -> click.Context:
    """The command as click reads it, without running it; raises click's own error where it cannot."""
    command: click.Command = root
    context = click.Context(root, info_name="faultline")
    rest = words[1:]
    while isinstance(command, click.Group):
        found = command.get_command(context, rest[0])
        assert found is not None, f"there is no `{' '.join(words[: len(words) - len(rest) + 1])}`"
        command, rest = found, rest[1:]
        if isinstance(command, click.Group):
            context = click.Context(command, parent=context)
    return command.make_context(command.name, list(rest), parent=context)


LINES = [*shipped.lines(), *shipped.in_the_guide()]
ONCE = {f"{line.where}: {' '.join(line.words)}": line for line in LINES}


@pytest.mark.parametrize("line", ONCE.values(), ids=ONCE.keys())
def test_every_command_line_is_understood(line: Line) -> None:
    understood(line.words)


def test_all_that_is_shipped_runs_something_of_ours() -> None:
    """Or the test above would pass for having found nothing."""
    places = {line.where.split()[0] for line in LINES}

    assert {"Dockerfile", "compose.yaml", "operate.md", "faultline-worker@.service"} <= places
    assert {f"deploy/kubernetes/{kind}-deployment.yaml" for kind in ("server", "worker")} <= places


def test_every_variable_of_ours_is_read_somewhere() -> None:
    sources = "".join(file.read_text() for file in (ROOT / "src").rglob("*.py"))
    named = {name for file in FILES for name in re.findall(r"\bFAULTLINE_[A-Z_]+", file.read_text())}

    assert "FAULTLINE_DSN" in named
    assert {name for name in named - OF_THE_UNITS if f'"{name}"' not in sources} == set()


def test_every_port_has_a_listener() -> None:
    """Of ours: what a command line says. Of others: their usual ones."""
    listened = {int(port) for line in LINES for port in re.findall(r"0\.0\.0\.0:(\d+)", " ".join(line.words))}
    named = set(_ports())

    assert listened >= {8000, 8001, 9187}
    assert named - set(OF_OTHERS) == listened


def _ports() -> Any:
    yield from map(int, re.search(r"EXPOSE (.*)", (ROOT / "Dockerfile").read_text())[1].split())
    for service in shipped.compose()["services"].values():
        for published in service.get("ports", []):
            yield int(published.rsplit(":", 1)[1])
    scraped = (ROOT / "deploy/prometheus/prometheus.yml").read_text()
    yield from map(int, re.findall(r"(?:port: |server:)(\d+)", scraped))
    for file in shipped.MANIFESTS:
        yield from map(int, re.findall(r"(?:containerPort|port): (\d+)", file.read_text()))


def test_every_alert_has_its_page_in_the_runbook() -> None:
    alerts = set(re.findall(r"alert: (\w+)", ALERTS.read_text()))
    pages = set(re.findall(r"^### (Faultline\w+)$", shipped.GUIDE.read_text(), re.MULTILINE))

    assert alerts == pages


def test_every_inline_command_of_the_guides_is_understood() -> None:
    """Those in a sentence too; what is left out in one is written as NAME or ID."""
    for guide in (shipped.GUIDE, ROOT / "docs/guides/drain.md"):
        for found in re.findall(r"`(faultline [a-z][^`]*)`", guide.read_text()):
            words = found.replace("ID", "1").split()
            if words[1] in ("server", "worker", "metrics") and len(words) == 2:
                continue  # the name of a command, not a use of it
            understood(words)
