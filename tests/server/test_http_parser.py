"""One parser: the server reads HTTP with httptools, or does not start."""

import subprocess
import sys

import pytest

WITHOUT = "import sys; sys.modules['httptools'] = None; "


@pytest.mark.parametrize(
    "start",
    [
        "from faultline.cli.root import main; sys.argv[1:] = ['server']; main()",
        "import faultline.server.process",
    ],
    ids=["the_command", "the_library"],
)
def test_without_httptools_a_server_says_what_it_needs_and_does_not_start(start):
    """uvicorn alone would fall back to h11, which takes requests that httptools refuses."""
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT + start], capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode != 0
    assert "pip install 'faultline-queue[server]'" in ended.stderr


def test_a_server_reads_with_httptools():
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    from faultline.server.http.connection.http_protocol import BoundedProtocol

    assert issubclass(BoundedProtocol, HttpToolsProtocol)
