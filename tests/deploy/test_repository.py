"""The files that a hosted repository reads: they fit their schemas, and name what is there."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.deploy.shipped import ROOT

CHECK = str(Path(sys.executable).parent / "check-jsonschema")
SCHEMAS = {
    ".github/workflows/ci.yml": "vendor.github-workflows",
    ".github/ISSUE_TEMPLATE/bug.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/feature.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/config.yml": "vendor.github-issue-config",
}


@pytest.mark.parametrize(("file", "schema"), SCHEMAS.items())
def test_a_file_fits_its_schema(file, schema):
    command = [CHECK, "--builtin-schema", schema, file]
    told = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)

    assert told.returncode == 0, told.stdout


def test_the_workflow_runs_what_a_developer_runs():
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    commands = {step["run"] for job in jobs.values() for step in job["steps"] if "run" in step}

    assert commands == {".ci/run", "make test", "make release-check"}


def test_every_owned_path_is_there():
    lines = (ROOT / ".github/CODEOWNERS").read_text().splitlines()
    paths = [line.split()[0] for line in lines if line.startswith("/")]

    assert paths
    assert [path for path in paths if not (ROOT / path.lstrip("/")).exists()] == []


def test_the_supported_pythons_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {line.rpartition(" ")[2] for line in project["classifiers"] if re.search(r":: 3\.\d+$", line)}
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    tested = {"3.11", *jobs["versions"]["strategy"]["matrix"]["python"]}

    assert named <= tested
