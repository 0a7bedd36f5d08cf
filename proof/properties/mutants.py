"""What each property must not survive: one mechanism taken away, in SQL or in Python."""

import json
import math
import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from unittest.mock import patch

from faultline import retry
from faultline.args import ArgsCodec
from faultline.retry import Again, Exponential

MACHINE: Final = "the machine"
Edit = tuple[str, str, str]
"""A function, a text of its source, and the replacement."""


@dataclass(frozen=True, slots=True)
class PropertyMutant:
    """What is broken, and the property that must notice."""

    name: str
    noticed_by: str
    edits: tuple[Edit, ...] = ()
    broken: Callable[[], AbstractContextManager[Any]] = nullcontext


def _exponent_not_capped(self: Exponential, attempt: int, chance: retry.Chance = random.random) -> timedelta:
    delay = min(self.first.total_seconds() * self.factor ** max(attempt - 1, 0), self.cap.total_seconds())
    return min(timedelta(seconds=delay * (1.0 - self.jitter * chance())), self.cap)


def _jitter_lengthens(self: Exponential, attempt: int, chance: retry.Chance = random.random) -> timedelta:
    whole = _whole(self, attempt)
    return whole * (1.0 + self.jitter * chance())


def _wraps_around(self: Exponential, attempt: int, chance: retry.Chance = random.random) -> timedelta:
    return _whole(self, attempt % 64)


def _whole(policy: Exponential, attempt: int) -> timedelta:
    if not policy.first or policy.factor == 1.0:
        return policy.first
    most = math.ceil(math.log(policy.cap / policy.first) / math.log(policy.factor))
    grown = policy.first.total_seconds() * policy.factor ** min(max(attempt - 1, 0), most)
    return timedelta(seconds=min(grown, policy.cap.total_seconds()))


def _delay(broken: Callable[..., timedelta]) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: patch.object(Exponential, "delay", broken)


def _half_seconds_lost() -> AbstractContextManager[Any]:
    def rounded(policy: Any) -> str:
        kept = json.loads(retry.to_json(policy))
        return json.dumps({name: value if name == "kind" else round(value) for name, value in kept.items()})

    return patch("proof.properties.delays.to_json", rounded)


def _policy_trusted() -> AbstractContextManager[Any]:
    def ask(policy: Any, attempt: int, error: BaseException, chance: Any) -> Again:
        return Again(policy(attempt, error))

    return patch.object(retry, "_ask", ask)


def _numbers_as_floats() -> AbstractContextManager[Any]:
    true = ArgsCodec.decode

    def decode(self: ArgsCodec, text: str) -> dict[str, Any]:
        return {
            name: int(float(value)) if type(value) is int else value
            for name, value in true(self, text).items()
        }

    return patch.object(ArgsCodec, "decode", decode)


def _results_in_ascii() -> AbstractContextManager[Any]:
    return patch(
        "proof.properties.codecs.encode_result",
        lambda value: json.dumps(value).replace("\\u", "u"),
    )


OF_THE_MACHINE: Final = (
    PropertyMutant(
        "complete does not ask for the claim", MACHINE, (("complete", "and job.claim = complete.claim", ""),)
    ),
    PropertyMutant(
        "complete does not ask for the token", MACHINE, (("complete", "and job.token = complete.token", ""),)
    ),
    PropertyMutant(
        "the fence does not ask for the claim", MACHINE, (("fence", "and job.claim = fence.claim", ""),)
    ),
    PropertyMutant(
        "a release keeps the attempt", MACHINE, (("give_back", "held.attempt - 1", "held.attempt"),)
    ),
    PropertyMutant(
        "the last attempt is not the last",
        MACHINE,
        (("put_back", "ended.attempt >= ended.max_attempts", "ended.attempt > ended.max_attempts"),),
    ),
    PropertyMutant(
        "a crash alone is not held against a job",
        MACHINE,
        (("crash", "case when times >= crash.max_crashes", "case when false"),),
    ),
    PropertyMutant(
        "reap does not count the crash", MACHINE, (("reap", "crashed => true", "crashed => false"),)
    ),
    PropertyMutant(
        "reap takes what has not run out",
        MACHINE,
        (("reap", "job.lease_until < moment", "job.lease_until <= moment + interval '5 seconds'"),),
    ),
    PropertyMutant(
        "a beat may shorten a lease", MACHINE, (("heartbeat", "greatest(job.lease_until, ", "greatest("),)
    ),
    PropertyMutant(
        "a beat moves the hard deadline",
        MACHINE,
        (("heartbeat", "heartbeat.lease), job.deadline_at)", "heartbeat.lease))"),),
    ),
    PropertyMutant(
        "promote does not wait for the moment",
        MACHINE,
        (("promote", "job.run_at <= moment", "job.run_at <= moment + interval '1 minute'"),),
    ),
    PropertyMutant("a claim takes from a paused queue", MACHINE, (("claim", "and not lane.paused", ""),)),
    PropertyMutant(
        "a claim keeps the token it finds",
        MACHINE,
        (("claim", "greatest(number, job.token + 1)", "greatest(job.token, 1)"),),
    ),
    PropertyMutant(
        "the key of a dead job never lapses",
        MACHINE,
        (("put_back", "judged.key is not null and judged.dies_of is not null", "false"),),
    ),
    PropertyMutant(
        "any job can be replayed", MACHINE, (("replay", "if place <> 'dead' then", "if false then"),)
    ),
    PropertyMutant(
        "a key lapses while its job lives",
        MACHINE,
        (
            ("take_key", "if held.until < moment then", "if held.until is null or held.until < moment then"),
            ("take_key", "named.until < moment;", "true;"),
        ),
    ),
    PropertyMutant(
        "a key outlives its window", MACHINE, (("take_key", "if held.until < moment then", "if false then"),)
    ),
    PropertyMutant(
        "a key names whatever was asked first",
        MACHINE,
        (("take_key", "elsif held.request <> take_key.request then", "elsif false then"),),
    ),
    PropertyMutant(
        "outcome does not ask for the claim", MACHINE, (("outcome", "and entry.claim = outcome.claim", ""),)
    ),
)

OF_THE_REST: Final = (
    PropertyMutant(
        "the exponent is not capped",
        "a delay stays between nothing and its cap",
        broken=_delay(_exponent_not_capped),
    ),
    PropertyMutant("the attempts wrap around", "a later attempt waits no less", broken=_delay(_wraps_around)),
    PropertyMutant(
        "jitter lengthens", "jitter only shortens and by its fraction", broken=_delay(_jitter_lengthens)
    ),
    PropertyMutant(
        "half seconds are lost in the row",
        "a stored policy is read back as it was",
        broken=_half_seconds_lost,
    ),
    PropertyMutant(
        "a policy is trusted", "a policy of the users own cannot break the retry", broken=_policy_trusted
    ),
    PropertyMutant(
        "the crash delay has no cap",
        "a crash delay grows to five minutes",
        (("crash_delay", "interval '5 minutes'", "interval '10 years'"),),
    ),
    PropertyMutant("numbers travel as floats", "args come back from json", broken=_numbers_as_floats),
    PropertyMutant(
        "results are kept as ASCII", "a result is json that says the same", broken=_results_in_ascii
    ),
    PropertyMutant(
        "args are cut at the door",
        "args come back from postgresql",
        (("claim", "job.args::text,", "(job.args::jsonb - 'share')::text,"),),
    ),
    PropertyMutant(
        "a key does not look at the args",
        "one key is one request",
        (("enqueue_keyed", "ask.args::jsonb::text", "''"),),
    ),
    PropertyMutant(
        "a key looks at the text",
        "one key is one request",
        (("enqueue_keyed", "ask.args::jsonb::text", "ask.args::text"),),
    ),
    PropertyMutant(
        "the epoch does not rise",
        "tokens grow over any sequence",
        (("epoch", "return (known.base + known.timeline - 1) << 40;", "return 0;"),),
    ),
    PropertyMutant(
        "a claim does not look at the row's last token",
        "tokens grow over any sequence",
        (("claim", "greatest(number, job.token + 1)", "number"),),
    ),
)

OF_LIMITS: Final = (
    PropertyMutant(
        "a job of a key starts beside another", "a flow keeps to its limit and ends",
        (("admit_first", "held.pos >= own.held_floor", "false"),),
    ),
    PropertyMutant(
        "a bucket is not clamped", "a rate grants its burst and its rate",
        (("charge", "filled + charge.starts", "moment + charge.starts"),),
    ),
)  # fmt: skip

MUTANTS: Final = (*OF_THE_MACHINE, *OF_THE_REST, *OF_LIMITS)
