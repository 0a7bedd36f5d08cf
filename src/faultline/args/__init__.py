"""A task's arguments, kept as JSON: the signature is the schema.

`ArgsCodec` checks and encodes a call at enqueue and decodes it in the worker; `encode_result` does the
same for what a handler returns, without a schema.
"""

from faultline.args.codec import ArgsCodec
from faultline.args.document import BYTES_MAX, DEPTH_MAX, encode_result
from faultline.args.results import ResultReader

__all__ = ["BYTES_MAX", "DEPTH_MAX", "ArgsCodec", "ResultReader", "encode_result"]
