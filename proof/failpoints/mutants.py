"""Mutants of this suite: the shipped SQL, broken on purpose, and the case that must not be kept then."""

from dataclasses import dataclass
from typing import Final

from proof.failpoints.case import FailpointCase


@dataclass(frozen=True, slots=True)
class FailpointMutant:
    """What is broken, in which function, and where the fault has to strike for it to be seen."""

    name: str
    case: FailpointCase
    function: str
    old: str
    new: str


MUTANTS: Final = (
    FailpointMutant(
        "a late commit is let through",
        FailpointCase("commit.sending", "freeze"),
        "complete",
        "perform faultline.refuse(complete.job_id, complete.token);",
        "return;",
    ),
    FailpointMutant(
        "a reaped job is not put back",
        FailpointCase("claimed", "kill"),
        "put_back",
        "from judged\n    where judged.dies_of is null",
        "from judged\n    where false",
    ),
    FailpointMutant(
        "a key does not find the job it named",
        FailpointCase("enqueue.sent", "kill"),
        "enqueue_keyed",
        "case when ask.key is null then",
        "case when true then",
    ),
)
