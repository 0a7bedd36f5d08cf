"""The primary dies: a standby that has everything and one that has fallen behind each keep their promises."""

import sys

import pytest

from faultline.lab.drills.run_drill import run_drill


@pytest.mark.skipif(sys.platform != "linux", reason="it starts two standbys of a server of its own")
def test_a_lease_of_the_lost_past_is_refused_and_every_promise_kept(console):
    code = run_drill("failover", console=console)

    printed = " ".join(console.file.getvalue().split())
    assert code == 0, console.file.getvalue()
    assert "A is REFUSED: token" in printed
    assert "of the lost past (token_mismatch)" in printed
    assert "old lease refused 1" in printed
