"""The command line: one file a command, loaded when it is asked for."""

import sys

__all__ = ["main"]

INTERRUPTED = 130


def main() -> None:
    """Where the `faultline` program begins."""
    try:
        from faultline.cli.root import main as run
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    run()
