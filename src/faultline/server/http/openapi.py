"""The OpenAPI document as a file: `python -m faultline.server.http.openapi FILE` writes it."""

import json
import sys
from pathlib import Path
from typing import Any

from faultline.server.auth import Authenticator
from faultline.server.http.api_context import ApiConfig
from faultline.server.http.http_app import create_app
from faultline.store.pool import AsyncStore


def document() -> dict[str, Any]:
    """What `/api/v1/openapi.json` of a server with `--drills` answers, without a database."""
    store = AsyncStore("")
    return create_app(store, Authenticator(store), ApiConfig(drills=True)).openapi()


def text() -> str:
    """The document as it is checked in."""
    return json.dumps(document(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text())
