"""Mutants of this suite: the shipped SQL, broken on purpose, and the case that must not be kept then."""

from dataclasses import dataclass
from typing import Final

from proof.failpoints.case import Case


@dataclass(frozen=True, slots=True)
class Mutant:
    """What is broken, in which function, and where the fault has to strike for it to be seen."""

    name: str
    case: Case
    function: str
    old: str
    new: str


MUTANTS: Final = (
    Mutant(
        "a late commit is let through",
        Case("commit.sending", "freeze"),
        "complete",
        "perform faultline.refuse(complete.job_id, complete.token);",
        "return;",
    ),
    Mutant(
        "a reaped job is not put back",
        Case("claimed", "kill"),
        "put_back",
        "from judged\n    where judged.dies_of is null",
        "from judged\n    where false",
    ),
    Mutant(
        "a key does not find the job it named",
        Case("enqueue.sent", "kill"),
        "enqueue_keyed",
        "case when ask.key is null then",
        "case when true then",
    ),
)
