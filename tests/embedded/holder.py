"""A process that holds a server until its standard input ends. Run as a script: holder.py FOLDER."""

import json
import sys
from pathlib import Path

from faultline.embedded import EmbeddedServer

if __name__ == "__main__":
    with EmbeddedServer.open(Path(sys.argv[1]), keep=False) as server:
        print(json.dumps({"pid": server.pid, "dsn": server.dsn()}), flush=True)
        sys.stdin.read()
