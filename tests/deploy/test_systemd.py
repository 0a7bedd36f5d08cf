"""The units: what systemd says of them, and that they give a worker the time it was promised."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from faultline.supervisor.supervisor import LEAVE_SECONDS_MAX
from scripts import tools
from tests.deploy import shipped

ANALYZE = shutil.which("systemd-analyze")
EXPOSURE_MAX = 2.0
"""Of ten, in systemd's own count; an ordinary service has 9.6."""

needs_systemd = pytest.mark.skipif(ANALYZE is None, reason=tools.why_not("systemd-analyze"))
services = pytest.mark.parametrize("file", shipped.UNITS, ids=lambda file: file.stem)


def seconds(duration: str) -> float:
    number, unit = re.fullmatch(r"(\d+)(s|min)", duration).groups()
    return int(number) * {"s": 1, "min": 60}[unit]


@pytest.fixture
def installed(tmp_path: Path) -> list[Path]:
    """The units as on a machine that has Faultline: the program is there, the template has an instance."""
    units = []
    for file in shipped.UNITS:
        unit = tmp_path / file.name.replace("@", "@shop")
        unit.write_text(file.read_text().replace(shipped.OURS, "/bin/true"))
        units.append(unit)
    return units


@needs_systemd
def test_systemd_understands_every_line(installed):
    told = subprocess.run([ANALYZE, "verify", *installed], capture_output=True, text=True)

    assert told.returncode == 0, told.stderr
    assert told.stderr == ""


@needs_systemd
def test_systemd_finds_them_well_protected(installed):
    for unit in installed:
        told = subprocess.run(
            [ANALYZE, "security", "--offline=true", unit], capture_output=True, text=True
        ).stdout

        assert float(re.search(r"exposure level.*: ([\d.]+)", told)[1]) < EXPOSURE_MAX, told


@services
def test_no_unit_runs_as_root_or_holds_a_password(file):
    service = shipped.unit(file)["Service"]

    assert service["DynamicUser"] == "yes"
    assert service["EnvironmentFile"].startswith("/etc/faultline/")
    assert "Environment" not in service


@pytest.mark.parametrize("file", shipped.UNITS[1:], ids=lambda file: file.stem)
def test_services_say_when_they_are_ready_and_are_given_time_to_stop(file):
    service = shipped.unit(file)["Service"]
    grace = seconds(re.search(r"--grace (\w+)", service["ExecStart"])[1])

    assert (service["Type"], service["NotifyAccess"]) == ("notify", "main")
    assert (service["Restart"], service["KillMode"]) == ("always", "mixed")
    assert seconds(service["WatchdogSec"]) >= 60
    assert seconds(service["TimeoutStopSec"]) >= grace + 10


def test_a_group_of_workers_may_end_its_stragglers_itself():
    (worker,) = [file for file in shipped.UNITS if "worker" in file.name]
    service = shipped.unit(worker)["Service"]
    grace = seconds(re.search(r"--grace (\w+)", service["ExecStart"])[1])

    assert seconds(service["TimeoutStopSec"]) > grace + LEAVE_SECONDS_MAX
