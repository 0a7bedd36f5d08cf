"""The OpenAPI document as a file: `python -m faultline.api.openapi docs/openapi.json` writes it anew."""

import json
import sys
from pathlib import Path
from typing import Any

from faultline.access import Doorman
from faultline.api.app import create_app
from faultline.store.run import AsyncStore


def document() -> dict[str, Any]:
    """What `/api/v1/openapi.json` answers, without a database."""
    store = AsyncStore("")
    return create_app(store, Doorman(store)).openapi()


def text() -> str:
    """The document as it is checked in."""
    return json.dumps(document(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text())
