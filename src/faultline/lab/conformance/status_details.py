"""The details of a status: a Problem, and a Refusal where a fence refused."""

import grpc

from faultline.lab.conformance.verdict import hold
from faultline.rpc.v1 import problem_pb2, worker_pb2


def problem_in(error: grpc.aio.AioRpcError) -> problem_pb2.Problem:
    """The Problem among the details of a status."""
    return _detail(error, problem_pb2.Problem())  # type: ignore[return-value]


def refusal_in(error: grpc.aio.AioRpcError) -> worker_pb2.Refusal:
    """The Refusal among the details of a status."""
    return _detail(error, worker_pb2.Refusal())  # type: ignore[return-value]


def _detail(error: grpc.aio.AioRpcError, wanted: object) -> object:
    for name, value in error.trailing_metadata() or ():
        if name == "grpc-status-details-bin":
            for packed in problem_pb2.Status.FromString(value).details:  # type: ignore[arg-type]
                if packed.Unpack(wanted):  # type: ignore[arg-type]
                    return wanted
    hold(False, f"the status has no {type(wanted).__name__} among its details")
    raise AssertionError
