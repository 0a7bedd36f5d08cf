"""The process of one drill that a server was asked for: what to play comes in by standard input."""

import json
import sys

from rich.console import Console

from faultline.errors import FaultlineError
from faultline.lab.drills.run_drill import DrillRequest, run_drills


def main() -> int:
    """Play it, telling each event as a line of JSON; 0 when every promise was kept, 3 when one was broken."""
    asked = json.load(sys.stdin)
    try:
        return run_drills([asked["drill"]], DrillRequest(dsn=asked["dsn"], log_json=True), Console())
    except FaultlineError as error:
        sys.stdout.write(json.dumps({"event": "failed", "error": type(error).__name__}) + "\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
