"""Mutants of what one key, or one address, may take of a server's time, memory and connections."""

from proof.mutants.mutant import Mutant, Patch

PACING = "tests/server/test_pacing.py"

MUTANTS = (
    Mutant(
        "large documents are checked as they come", "G13",
        f"{PACING}::test_checks_of_many_calls_come_one_to_a_turn_of_the_loop",
        (Patch("server/pacing.py", "        await self._begin(name_of_turn())\n", ""),),
    ),
    Mutant(
        "large documents are checked in the order of arrival", "G13",
        f"{PACING}::test_keys_take_turns_and_one_that_leaves_holds_none_up",
        (Patch("server/pacing.py", "self._begin(name_of_turn())", 'self._begin("")'),),
        red_by=("AssertionError",),
    ),
    Mutant(
        "results are checked without a turn", "G13", f"{PACING}::test_every_door_paces_its_large_documents",
        (Patch("remote/serving/settling.py", "all_of(checks, size)", "all_of(checks, 0)"),),
    ),
    Mutant(
        "every number with an exponent is read singly", "G13",
        f"{PACING}::test_a_number_with_an_exponent_costs_no_python_of_its_own",
        (Patch(
            "args/scan.py", "        lower, has_long = self.lower(), _MANY in form\n",
            "        lower, has_long = self.lower(), _MANY in form\n"
            "        for found in _POWERED.finditer(lower):\n"
            "            if _is_too_large((found.group(1), b'', found.group(2))):\n"
            "                return NUMBER_TOO_LARGE\n",
        ),),
    ),
)  # fmt: skip
