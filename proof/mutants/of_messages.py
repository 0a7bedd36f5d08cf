"""Mutants of what messages cost the gRPC server: weighed before they are parsed, and let go of."""

from proof.mutants.mutant import Mutant, Patch

WEIGHING = "tests/remote/test_weighing.py"


def serving(module: str, old: str, new: str) -> Patch:
    return Patch(f"remote/serving/{module}.py", old, new)


MUTANTS = (
    Mutant(
        "a refused call keeps its message", "G13", f"{WEIGHING}::test_refused_calls_leave_no_message_behind",
        (serving("problems", "    while error is not None:\n", "    while False:\n"),),
    ),
    Mutant(
        "a probe may be of any length", "G13", f"{WEIGHING}::test_a_probe_asks_in_a_few_bytes",
        (serving("unparsed", '"Check": Bound(PROBE_BYTES_MAX)', '"Check": Bound(whole)'),),
    ),
    Mutant(
        "a message is parsed whatever it becomes", "G13",
        f"{WEIGHING}::test_a_message_that_would_grow_is_refused_before_it_is_parsed",
        (serving("unparsed", "        if len(raw) > self.fields_max:", "        if False:"),),
    ),
)  # fmt: skip
