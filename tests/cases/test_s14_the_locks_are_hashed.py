"""Case S14: what is installed is what was locked; every package by its hash, from no index of its own."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("lock", ["dev", "demo", "server", "build", "docs"])
def test_s14_every_locked_package_has_a_hash_and_no_address(lock):
    lines = (ROOT / f"requirements/{lock}.lock").read_text().replace("\\\n", " ").splitlines()
    packages = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]

    assert len(packages) > 5
    assert all("--hash=sha256:" in line for line in packages)
    assert not [line for line in packages if "://" in line or "index-url" in line]


def test_s14_the_environment_is_made_with_hashes_required():
    assert "--require-hashes" in (ROOT / "scripts/environment.py").read_text()
