"""What an app adds around its handlers: transactions, resources, middleware and hooks. Plain declarations."""

from faultline.extensions.app_extensions import AppExtensions
from faultline.extensions.django_transactions import DjangoTransactions
from faultline.extensions.hooks import Hooks, JobEvent
from faultline.extensions.middleware import MiddlewareChain
from faultline.extensions.parameters import Injection, injected, injection_of
from faultline.extensions.resources import Resource, Resources
from faultline.extensions.transactions import TransactionProvider, Transactions

__all__ = [
    "AppExtensions",
    "DjangoTransactions",
    "Hooks",
    "Injection",
    "JobEvent",
    "MiddlewareChain",
    "Resource",
    "Resources",
    "TransactionProvider",
    "Transactions",
    "injected",
    "injection_of",
]
