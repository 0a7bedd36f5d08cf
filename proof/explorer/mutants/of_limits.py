"""Mutants of limits."""

from proof.explorer.mutants.mutant import LOCKED, ExplorerMutant

MUTANTS = (
    ExplorerMutant(
        "an admission takes no lock",
        (("admit", f"where l.id = line.limit_id {LOCKED}", "where l.id = line.limit_id;"),),
        "two claims and one slot",
        "WithinLimit",
    ),
    ExplorerMutant(
        "an admission counts before it has the lock",
        (
            (
                "admit",
                "    if line.parent is distinct from parent.id then",
                "    select * into own from faultline.limits as l where l.id = line.limit_id;\n"
                "    wanted := faultline.slots_left(own);\n"
                "    perform from faultline.limits as l where l.id = line.limit_id for no key update;\n"
                "    if line.parent is distinct from parent.id then",
            ),
            (
                "admit",
                "faultline.slots_left(own), faultline.slots_left(parent)",
                "wanted, faultline.slots_left(parent)",
            ),
        ),
        "two claims and one slot",
        "WithinLimit",
    ),
    ExplorerMutant(
        "an admission counts leased jobs only",
        (("slots_left", "job.pos >= counted.held_floor", "job.claim is not null"),),
        "a plain job ahead of an admitted one",
        "WithinLimit",
    ),
    ExplorerMutant(
        "the floor of held jobs is the newest place",
        (("first_held", "then coalesce(first, newest) else", "then newest else"),),
        "a floor against an admission",
        "WithinLimit",
    ),
    ExplorerMutant(
        "two jobs of a key are first",
        (
            (
                "admit_first",
                "where held.limit_id = own.id and held.gate = g.gate and held.pos >= own.held_floor",
                "where false",
            ),
        ),
        "two claims and one key",
        "WithinLimit",
    ),
)
