from faultline.rpc.v1 import problem_pb2 as _problem_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Pulse(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PULSE_UNSPECIFIED: _ClassVar[Pulse]
    PULSE_HELD: _ClassVar[Pulse]
    PULSE_LOST: _ClassVar[Pulse]
    PULSE_CANCEL: _ClassVar[Pulse]
    PULSE_BUSY: _ClassVar[Pulse]

class Why(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WHY_UNSPECIFIED: _ClassVar[Why]
    WHY_REFUSED: _ClassVar[Why]
    WHY_BUSY: _ClassVar[Why]
    WHY_INVALID: _ClassVar[Why]
    WHY_UNSENT: _ClassVar[Why]
    WHY_UNKNOWN: _ClassVar[Why]

class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REASON_UNSPECIFIED: _ClassVar[Reason]
    REASON_TOKEN_MISMATCH: _ClassVar[Reason]
    REASON_SETTLED: _ClassVar[Reason]
    REASON_CANCELLED: _ClassVar[Reason]
    REASON_GONE: _ClassVar[Reason]

class End(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    END_UNSPECIFIED: _ClassVar[End]
    END_RUNNING: _ClassVar[End]
    END_SUCCEEDED: _ClassVar[End]
    END_FAILED: _ClassVar[End]
    END_EXPIRED: _ClassVar[End]
    END_SNOOZED: _ClassVar[End]
    END_RELEASED: _ClassVar[End]
    END_CANCELLED: _ClassVar[End]
    END_DEAD: _ClassVar[End]
    END_GONE: _ClassVar[End]
    END_BUSY: _ClassVar[End]
PULSE_UNSPECIFIED: Pulse
PULSE_HELD: Pulse
PULSE_LOST: Pulse
PULSE_CANCEL: Pulse
PULSE_BUSY: Pulse
WHY_UNSPECIFIED: Why
WHY_REFUSED: Why
WHY_BUSY: Why
WHY_INVALID: Why
WHY_UNSENT: Why
WHY_UNKNOWN: Why
REASON_UNSPECIFIED: Reason
REASON_TOKEN_MISMATCH: Reason
REASON_SETTLED: Reason
REASON_CANCELLED: Reason
REASON_GONE: Reason
END_UNSPECIFIED: End
END_RUNNING: End
END_SUCCEEDED: End
END_FAILED: End
END_EXPIRED: End
END_SNOOZED: End
END_RELEASED: End
END_CANCELLED: End
END_DEAD: End
END_GONE: End
END_BUSY: End

class FromWorker(_message.Message):
    __slots__ = ("hello", "ask", "withdraw", "beat", "results", "goodbye", "ping")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    WITHDRAW_FIELD_NUMBER: _ClassVar[int]
    BEAT_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    GOODBYE_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    ask: Ask
    withdraw: Withdraw
    beat: Beat
    results: Results
    goodbye: Goodbye
    ping: Ping
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., ask: _Optional[_Union[Ask, _Mapping]] = ..., withdraw: _Optional[_Union[Withdraw, _Mapping]] = ..., beat: _Optional[_Union[Beat, _Mapping]] = ..., results: _Optional[_Union[Results, _Mapping]] = ..., goodbye: _Optional[_Union[Goodbye, _Mapping]] = ..., ping: _Optional[_Union[Ping, _Mapping]] = ...) -> None: ...

class ToWorker(_message.Message):
    __slots__ = ("welcome", "assignments", "beaten", "settled", "notice", "pong")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    BEATEN_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    NOTICE_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    assignments: Assignments
    beaten: Beaten
    settled: Settled
    notice: Notice
    pong: Pong
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., assignments: _Optional[_Union[Assignments, _Mapping]] = ..., beaten: _Optional[_Union[Beaten, _Mapping]] = ..., settled: _Optional[_Union[Settled, _Mapping]] = ..., notice: _Optional[_Union[Notice, _Mapping]] = ..., pong: _Optional[_Union[Pong, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("protocol", "name", "host", "pid", "version", "queues", "tasks", "slots", "lease_ms", "timeout_ms", "worker", "wakes")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    WAKES_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    name: str
    host: str
    pid: int
    version: str
    queues: _containers.RepeatedScalarFieldContainer[str]
    tasks: _containers.RepeatedScalarFieldContainer[str]
    slots: int
    lease_ms: int
    timeout_ms: int
    worker: int
    wakes: bool
    def __init__(self, protocol: _Optional[int] = ..., name: _Optional[str] = ..., host: _Optional[str] = ..., pid: _Optional[int] = ..., version: _Optional[str] = ..., queues: _Optional[_Iterable[str]] = ..., tasks: _Optional[_Iterable[str]] = ..., slots: _Optional[int] = ..., lease_ms: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., worker: _Optional[int] = ..., wakes: bool = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("worker", "protocol", "server_version", "lease_ms", "timeout_ms", "limits", "pings")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    PINGS_FIELD_NUMBER: _ClassVar[int]
    worker: int
    protocol: int
    server_version: str
    lease_ms: int
    timeout_ms: int
    limits: Limits
    pings: bool
    def __init__(self, worker: _Optional[int] = ..., protocol: _Optional[int] = ..., server_version: _Optional[str] = ..., lease_ms: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., pings: bool = ...) -> None: ...

class Ping(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: int
    def __init__(self, id: _Optional[int] = ...) -> None: ...

class Pong(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: int
    def __init__(self, id: _Optional[int] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("message_bytes_max", "room_max", "wait_ms_max", "items_max", "unanswered_max", "except_tasks_max")
    MESSAGE_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    ROOM_MAX_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_MAX_FIELD_NUMBER: _ClassVar[int]
    ITEMS_MAX_FIELD_NUMBER: _ClassVar[int]
    UNANSWERED_MAX_FIELD_NUMBER: _ClassVar[int]
    EXCEPT_TASKS_MAX_FIELD_NUMBER: _ClassVar[int]
    message_bytes_max: int
    room_max: int
    wait_ms_max: int
    items_max: int
    unanswered_max: int
    except_tasks_max: int
    def __init__(self, message_bytes_max: _Optional[int] = ..., room_max: _Optional[int] = ..., wait_ms_max: _Optional[int] = ..., items_max: _Optional[int] = ..., unanswered_max: _Optional[int] = ..., except_tasks_max: _Optional[int] = ...) -> None: ...

class Ask(_message.Message):
    __slots__ = ("id", "room", "wait_ms", "queues", "claim", "again", "begins", "trace", "except_tasks")
    ID_FIELD_NUMBER: _ClassVar[int]
    ROOM_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    BEGINS_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    EXCEPT_TASKS_FIELD_NUMBER: _ClassVar[int]
    id: int
    room: int
    wait_ms: int
    queues: _containers.RepeatedScalarFieldContainer[str]
    claim: bytes
    again: bool
    begins: _containers.RepeatedCompositeFieldContainer[Begin]
    trace: str
    except_tasks: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[int] = ..., room: _Optional[int] = ..., wait_ms: _Optional[int] = ..., queues: _Optional[_Iterable[str]] = ..., claim: _Optional[bytes] = ..., again: bool = ..., begins: _Optional[_Iterable[_Union[Begin, _Mapping]]] = ..., trace: _Optional[str] = ..., except_tasks: _Optional[_Iterable[str]] = ...) -> None: ...

class Begin(_message.Message):
    __slots__ = ("lane", "place")
    LANE_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    lane: int
    place: int
    def __init__(self, lane: _Optional[int] = ..., place: _Optional[int] = ...) -> None: ...

class Withdraw(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: int
    def __init__(self, id: _Optional[int] = ...) -> None: ...

class Assignments(_message.Message):
    __slots__ = ("id", "jobs", "more", "waited_ms", "trouble")
    ID_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    WAITED_MS_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    id: int
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    more: bool
    waited_ms: int
    trouble: Trouble
    def __init__(self, id: _Optional[int] = ..., jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ..., more: bool = ..., waited_ms: _Optional[int] = ..., trouble: _Optional[_Union[Trouble, _Mapping]] = ...) -> None: ...

class Trouble(_message.Message):
    __slots__ = ("problem", "unknown")
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    problem: _problem_pb2.Problem
    unknown: bool
    def __init__(self, problem: _Optional[_Union[_problem_pb2.Problem, _Mapping]] = ..., unknown: bool = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ("id", "token", "claim", "task", "queue", "args", "attempt", "max_attempts", "crashes", "lease_ms", "deadline_ms", "created_at_us", "key", "timeout_ms", "retry", "lane", "place", "trace", "pickup_us", "priority", "key_seed")
    ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    CRASHES_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_US_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    PICKUP_US_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    KEY_SEED_FIELD_NUMBER: _ClassVar[int]
    id: int
    token: int
    claim: bytes
    task: str
    queue: str
    args: bytes
    attempt: int
    max_attempts: int
    crashes: int
    lease_ms: int
    deadline_ms: int
    created_at_us: int
    key: str
    timeout_ms: int
    retry: str
    lane: int
    place: int
    trace: str
    pickup_us: int
    priority: int
    key_seed: bytes
    def __init__(self, id: _Optional[int] = ..., token: _Optional[int] = ..., claim: _Optional[bytes] = ..., task: _Optional[str] = ..., queue: _Optional[str] = ..., args: _Optional[bytes] = ..., attempt: _Optional[int] = ..., max_attempts: _Optional[int] = ..., crashes: _Optional[int] = ..., lease_ms: _Optional[int] = ..., deadline_ms: _Optional[int] = ..., created_at_us: _Optional[int] = ..., key: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., retry: _Optional[str] = ..., lane: _Optional[int] = ..., place: _Optional[int] = ..., trace: _Optional[str] = ..., pickup_us: _Optional[int] = ..., priority: _Optional[int] = ..., key_seed: _Optional[bytes] = ...) -> None: ...

class Proof(_message.Message):
    __slots__ = ("job_id", "token", "claim")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    job_id: int
    token: int
    claim: bytes
    def __init__(self, job_id: _Optional[int] = ..., token: _Optional[int] = ..., claim: _Optional[bytes] = ...) -> None: ...

class Beat(_message.Message):
    __slots__ = ("id", "leases")
    ID_FIELD_NUMBER: _ClassVar[int]
    LEASES_FIELD_NUMBER: _ClassVar[int]
    id: int
    leases: _containers.RepeatedCompositeFieldContainer[Proof]
    def __init__(self, id: _Optional[int] = ..., leases: _Optional[_Iterable[_Union[Proof, _Mapping]]] = ...) -> None: ...

class Beaten(_message.Message):
    __slots__ = ("id", "answers", "trouble")
    ID_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    id: int
    answers: _containers.RepeatedScalarFieldContainer[Pulse]
    trouble: Trouble
    def __init__(self, id: _Optional[int] = ..., answers: _Optional[_Iterable[_Union[Pulse, str]]] = ..., trouble: _Optional[_Union[Trouble, _Mapping]] = ...) -> None: ...

class Results(_message.Message):
    __slots__ = ("id", "items")
    ID_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    id: int
    items: _containers.RepeatedCompositeFieldContainer[Result]
    def __init__(self, id: _Optional[int] = ..., items: _Optional[_Iterable[_Union[Result, _Mapping]]] = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ("job_id", "token", "claim", "done", "failed", "snoozed", "released", "crashed", "buried", "cancelled")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    SNOOZED_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    CRASHED_FIELD_NUMBER: _ClassVar[int]
    BURIED_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    job_id: int
    token: int
    claim: bytes
    done: Done
    failed: Failed
    snoozed: Snoozed
    released: Released
    crashed: Crashed
    buried: Buried
    cancelled: Cancelled
    def __init__(self, job_id: _Optional[int] = ..., token: _Optional[int] = ..., claim: _Optional[bytes] = ..., done: _Optional[_Union[Done, _Mapping]] = ..., failed: _Optional[_Union[Failed, _Mapping]] = ..., snoozed: _Optional[_Union[Snoozed, _Mapping]] = ..., released: _Optional[_Union[Released, _Mapping]] = ..., crashed: _Optional[_Union[Crashed, _Mapping]] = ..., buried: _Optional[_Union[Buried, _Mapping]] = ..., cancelled: _Optional[_Union[Cancelled, _Mapping]] = ...) -> None: ...

class Done(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: bytes
    def __init__(self, result: _Optional[bytes] = ...) -> None: ...

class Failed(_message.Message):
    __slots__ = ("error", "delay_ms")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    error: str
    delay_ms: int
    def __init__(self, error: _Optional[str] = ..., delay_ms: _Optional[int] = ...) -> None: ...

class Snoozed(_message.Message):
    __slots__ = ("delay_ms", "reason")
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    delay_ms: int
    reason: str
    def __init__(self, delay_ms: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Released(_message.Message):
    __slots__ = ("reason", "delay_ms")
    REASON_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    reason: str
    delay_ms: int
    def __init__(self, reason: _Optional[str] = ..., delay_ms: _Optional[int] = ...) -> None: ...

class Crashed(_message.Message):
    __slots__ = ("error", "signature", "alone", "max_crashes", "delay_ms")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    ALONE_FIELD_NUMBER: _ClassVar[int]
    MAX_CRASHES_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    error: str
    signature: str
    alone: bool
    max_crashes: int
    delay_ms: int
    def __init__(self, error: _Optional[str] = ..., signature: _Optional[str] = ..., alone: bool = ..., max_crashes: _Optional[int] = ..., delay_ms: _Optional[int] = ...) -> None: ...

class Buried(_message.Message):
    __slots__ = ("reason", "error")
    REASON_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    reason: str
    error: str
    def __init__(self, reason: _Optional[str] = ..., error: _Optional[str] = ...) -> None: ...

class Cancelled(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class Settled(_message.Message):
    __slots__ = ("id", "accepted", "rest")
    ID_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    REST_FIELD_NUMBER: _ClassVar[int]
    id: int
    accepted: int
    rest: _containers.RepeatedCompositeFieldContainer[Unsettled]
    def __init__(self, id: _Optional[int] = ..., accepted: _Optional[int] = ..., rest: _Optional[_Iterable[_Union[Unsettled, _Mapping]]] = ...) -> None: ...

class Unsettled(_message.Message):
    __slots__ = ("index", "why", "refusal", "problem")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    index: int
    why: Why
    refusal: Refusal
    problem: _problem_pb2.Problem
    def __init__(self, index: _Optional[int] = ..., why: _Optional[_Union[Why, str]] = ..., refusal: _Optional[_Union[Refusal, _Mapping]] = ..., problem: _Optional[_Union[_problem_pb2.Problem, _Mapping]] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("job_id", "token", "reason", "current_token")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CURRENT_TOKEN_FIELD_NUMBER: _ClassVar[int]
    job_id: int
    token: int
    reason: Reason
    current_token: int
    def __init__(self, job_id: _Optional[int] = ..., token: _Optional[int] = ..., reason: _Optional[_Union[Reason, str]] = ..., current_token: _Optional[int] = ...) -> None: ...

class Notice(_message.Message):
    __slots__ = ("wake", "cancel", "drain", "deaf")
    WAKE_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    DEAF_FIELD_NUMBER: _ClassVar[int]
    wake: str
    cancel: Proof
    drain: Drain
    deaf: bool
    def __init__(self, wake: _Optional[str] = ..., cancel: _Optional[_Union[Proof, _Mapping]] = ..., drain: _Optional[_Union[Drain, _Mapping]] = ..., deaf: bool = ...) -> None: ...

class Drain(_message.Message):
    __slots__ = ("grace_ms",)
    GRACE_MS_FIELD_NUMBER: _ClassVar[int]
    grace_ms: int
    def __init__(self, grace_ms: _Optional[int] = ...) -> None: ...

class Goodbye(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StopRequest(_message.Message):
    __slots__ = ("worker",)
    WORKER_FIELD_NUMBER: _ClassVar[int]
    worker: int
    def __init__(self, worker: _Optional[int] = ...) -> None: ...

class StopResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LeaseRequest(_message.Message):
    __slots__ = ("worker", "ask", "lease_ms", "timeout_ms")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    worker: int
    ask: Ask
    lease_ms: int
    timeout_ms: int
    def __init__(self, worker: _Optional[int] = ..., ask: _Optional[_Union[Ask, _Mapping]] = ..., lease_ms: _Optional[int] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("worker", "beat", "lease_ms")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    BEAT_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    worker: int
    beat: Beat
    lease_ms: int
    def __init__(self, worker: _Optional[int] = ..., beat: _Optional[_Union[Beat, _Mapping]] = ..., lease_ms: _Optional[int] = ...) -> None: ...

class SettleRequest(_message.Message):
    __slots__ = ("worker", "results")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    worker: int
    results: Results
    def __init__(self, worker: _Optional[int] = ..., results: _Optional[_Union[Results, _Mapping]] = ...) -> None: ...

class OutcomeRequest(_message.Message):
    __slots__ = ("leases", "in_own_transaction")
    LEASES_FIELD_NUMBER: _ClassVar[int]
    IN_OWN_TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    leases: _containers.RepeatedCompositeFieldContainer[Proof]
    in_own_transaction: bool
    def __init__(self, leases: _Optional[_Iterable[_Union[Proof, _Mapping]]] = ..., in_own_transaction: bool = ...) -> None: ...

class OutcomeResponse(_message.Message):
    __slots__ = ("ends",)
    ENDS_FIELD_NUMBER: _ClassVar[int]
    ends: _containers.RepeatedScalarFieldContainer[End]
    def __init__(self, ends: _Optional[_Iterable[_Union[End, str]]] = ...) -> None: ...

class RefusedRequest(_message.Message):
    __slots__ = ("worker", "job_id", "token", "claim")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    worker: int
    job_id: int
    token: int
    claim: bytes
    def __init__(self, worker: _Optional[int] = ..., job_id: _Optional[int] = ..., token: _Optional[int] = ..., claim: _Optional[bytes] = ...) -> None: ...

class LeaseName(_message.Message):
    __slots__ = ("job_id", "token")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    job_id: int
    token: int
    def __init__(self, job_id: _Optional[int] = ..., token: _Optional[int] = ...) -> None: ...

class FiguresRequest(_message.Message):
    __slots__ = ("granted", "refused")
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    granted: _containers.RepeatedCompositeFieldContainer[LeaseName]
    refused: _containers.RepeatedCompositeFieldContainer[LeaseName]
    def __init__(self, granted: _Optional[_Iterable[_Union[LeaseName, _Mapping]]] = ..., refused: _Optional[_Iterable[_Union[LeaseName, _Mapping]]] = ...) -> None: ...

class FiguresResponse(_message.Message):
    __slots__ = ("recovery_seconds", "zombie_seconds")
    RECOVERY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ZOMBIE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    recovery_seconds: _containers.RepeatedScalarFieldContainer[float]
    zombie_seconds: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, recovery_seconds: _Optional[_Iterable[float]] = ..., zombie_seconds: _Optional[_Iterable[float]] = ...) -> None: ...

class NewestPlaceRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NewestPlaceResponse(_message.Message):
    __slots__ = ("place",)
    PLACE_FIELD_NUMBER: _ClassVar[int]
    place: int
    def __init__(self, place: _Optional[int] = ...) -> None: ...

class OthersServeRequest(_message.Message):
    __slots__ = ("worker", "queue")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    worker: int
    queue: str
    def __init__(self, worker: _Optional[int] = ..., queue: _Optional[str] = ...) -> None: ...

class OthersServeResponse(_message.Message):
    __slots__ = ("others",)
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    others: bool
    def __init__(self, others: bool = ...) -> None: ...
