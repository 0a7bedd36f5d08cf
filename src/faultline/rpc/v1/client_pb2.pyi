from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NewJob(_message.Message):
    __slots__ = ("task", "args", "queue", "priority", "run_at_us", "delay_ms", "max_attempts", "lease_ms", "timeout_ms", "retry", "key", "key_for_ms", "trace", "key_rule", "expires_at_us", "expires_in_ms")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    RUN_AT_US_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    KEY_FOR_MS_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    KEY_RULE_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_US_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_IN_MS_FIELD_NUMBER: _ClassVar[int]
    task: str
    args: bytes
    queue: str
    priority: int
    run_at_us: int
    delay_ms: int
    max_attempts: int
    lease_ms: int
    timeout_ms: int
    retry: str
    key: str
    key_for_ms: int
    trace: str
    key_rule: str
    expires_at_us: int
    expires_in_ms: int
    def __init__(self, task: _Optional[str] = ..., args: _Optional[bytes] = ..., queue: _Optional[str] = ..., priority: _Optional[int] = ..., run_at_us: _Optional[int] = ..., delay_ms: _Optional[int] = ..., max_attempts: _Optional[int] = ..., lease_ms: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., retry: _Optional[str] = ..., key: _Optional[str] = ..., key_for_ms: _Optional[int] = ..., trace: _Optional[str] = ..., key_rule: _Optional[str] = ..., expires_at_us: _Optional[int] = ..., expires_in_ms: _Optional[int] = ...) -> None: ...

class SubmitRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: NewJob
    def __init__(self, job: _Optional[_Union[NewJob, _Mapping]] = ...) -> None: ...

class SubmitResponse(_message.Message):
    __slots__ = ("id", "is_new")
    ID_FIELD_NUMBER: _ClassVar[int]
    IS_NEW_FIELD_NUMBER: _ClassVar[int]
    id: int
    is_new: bool
    def __init__(self, id: _Optional[int] = ..., is_new: bool = ...) -> None: ...

class SubmitManyRequest(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[NewJob]
    def __init__(self, jobs: _Optional[_Iterable[_Union[NewJob, _Mapping]]] = ...) -> None: ...

class SubmitManyResponse(_message.Message):
    __slots__ = ("ids",)
    IDS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ids: _Optional[_Iterable[int]] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: int
    def __init__(self, id: _Optional[int] = ...) -> None: ...

class WaitRequest(_message.Message):
    __slots__ = ("id", "wait_ms")
    ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    id: int
    wait_ms: int
    def __init__(self, id: _Optional[int] = ..., wait_ms: _Optional[int] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("id", "reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: int
    reason: str
    def __init__(self, id: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class JobInfo(_message.Message):
    __slots__ = ("id", "state", "ended", "task", "queue", "priority", "args", "result", "attempt", "max_attempts", "crashes", "run_at_us", "created_at_us", "claimed_at_us", "lease_until_us", "finished_at_us", "worker", "token", "error", "key", "damage")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    CRASHES_FIELD_NUMBER: _ClassVar[int]
    RUN_AT_US_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_US_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_AT_US_FIELD_NUMBER: _ClassVar[int]
    LEASE_UNTIL_US_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_US_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    DAMAGE_FIELD_NUMBER: _ClassVar[int]
    id: int
    state: str
    ended: bool
    task: str
    queue: str
    priority: int
    args: bytes
    result: bytes
    attempt: int
    max_attempts: int
    crashes: int
    run_at_us: int
    created_at_us: int
    claimed_at_us: int
    lease_until_us: int
    finished_at_us: int
    worker: str
    token: int
    error: str
    key: str
    damage: str
    def __init__(self, id: _Optional[int] = ..., state: _Optional[str] = ..., ended: bool = ..., task: _Optional[str] = ..., queue: _Optional[str] = ..., priority: _Optional[int] = ..., args: _Optional[bytes] = ..., result: _Optional[bytes] = ..., attempt: _Optional[int] = ..., max_attempts: _Optional[int] = ..., crashes: _Optional[int] = ..., run_at_us: _Optional[int] = ..., created_at_us: _Optional[int] = ..., claimed_at_us: _Optional[int] = ..., lease_until_us: _Optional[int] = ..., finished_at_us: _Optional[int] = ..., worker: _Optional[str] = ..., token: _Optional[int] = ..., error: _Optional[str] = ..., key: _Optional[str] = ..., damage: _Optional[str] = ...) -> None: ...
