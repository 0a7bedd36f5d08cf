"""The command line: one file a command, loaded when it is asked for."""

from faultline.cli.root import main

__all__ = ["main"]
