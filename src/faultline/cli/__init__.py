"""The command line: one file a command, imported when it is used."""

import sys

__all__ = ["main"]

INTERRUPTED = 130


def main() -> None:
    """The entry point of the `faultline` program."""
    try:
        from faultline.cli.root import main as run
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    run()
