"""The HTTP API: an ASGI app that `faultline server` runs, and that your own app may mount.

from faultline.access import Doorman
from faultline.api import create_app

app.mount("/queue", create_app(store, Doorman(store)))
"""

from faultline.api.app import create_app
from faultline.api.desk import ApiConfig

__all__ = ["ApiConfig", "create_app"]
