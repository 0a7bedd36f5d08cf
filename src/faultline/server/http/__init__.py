"""The HTTP API: an ASGI app that `faultline server` runs, and that your own app may mount.

from faultline.server.auth import Authenticator
from faultline.server.http import create_app

app.mount("/queue", create_app(store, Authenticator(store)))
"""

from faultline.server.http.api_context import ApiConfig
from faultline.server.http.http_app import create_app

__all__ = ["ApiConfig", "create_app"]
