"""All that one app has registered around its handlers."""

from faultline.extensions.hooks import Hooks
from faultline.extensions.middleware import MiddlewareChain
from faultline.extensions.parameters import Injection
from faultline.extensions.resources import Resources
from faultline.extensions.transactions import Transactions


class AppExtensions:
    """The transactions, resources, middleware and hooks of one app; its tasks refer to it.

    >>> extensions = AppExtensions()
    >>> extensions.middleware.of_runs, extensions.transactions.find(int)
    ([], None)
    """

    def __init__(self) -> None:
        self.transactions = Transactions()
        self.resources = Resources()
        self.middleware = MiddlewareChain()
        self.hooks = Hooks()

    def check(self, task: str, is_async: bool, injection: Injection | None) -> None:
        """At a worker's start: whether all that a handler asks for has been registered by now."""
        if injection is not None:
            self.transactions.check(task, is_async, injection)
            for name, kind in injection.resources:
                self.resources.check(task, is_async, name, kind)
