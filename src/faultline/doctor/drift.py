"""Differences of a database from the shipped schema, and dangerous rights: facts in, findings out. Pure."""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from faultline.doctor.access_facts import AccessFacts, Function, Power, Relation
from faultline.doctor.shipped_schema import ShippedFunction, role_grants, shipped

MIGRATE: Final = (
    "create the functions again: `update faultline.settings set functions = ''`, then `faultline migrate`"
)
ROLES: Final = (
    "run `faultline roles create` as the owner: it grants each role what its duty says, and no more"
)


class DriftFinding(NamedTuple):
    """One thing that is wrong, and what to do about it."""

    about: str
    grade: Literal["warn", "bad"]
    said: str
    remedy: str


def findings(facts: AccessFacts) -> list[DriftFinding]:
    """All differences; none when all is well."""
    return [
        *_functions(facts),
        *_owners(facts),
        *_calls(facts),
        *_grants(facts),
        *_powers(facts),
        *_memberships(facts),
        *_back_doors(facts),
    ]


def _functions(facts: AccessFacts) -> Iterator[DriftFinding]:
    expected = shipped()
    found: dict[str, list[Function]] = {}
    for function in facts.functions:
        found.setdefault(function.name, []).append(function)
    for name in sorted(expected.keys() - found.keys()):
        yield DriftFinding(f"function {name}", "bad", "is missing", MIGRATE)
    for name, forms in sorted(found.items()):
        if name not in expected:
            yield DriftFinding(
                f"function {name}", "bad", "is none of ours", f"drop it, or move it elsewhere; {MIGRATE}"
            )
        elif len(forms) > 1:
            yield DriftFinding(
                f"function {name}", "bad", f"is there in {len(forms)} forms, one of them not ours", MIGRATE
            )
        else:
            yield from _compared(forms[0], expected[name])


def _compared(function: Function, should: ShippedFunction) -> Iterator[DriftFinding]:
    about = f"function {function.name}"
    if function.body != should.body:
        yield DriftFinding(about, "bad", "does not say what was shipped", MIGRATE)
    if function.definer != should.definer:
        whose = "its owner" if function.definer else "its caller"
        yield DriftFinding(about, "bad", f"runs with the rights of {whose}", MIGRATE)
    if frozenset(function.config) != should.config:
        differs = ", ".join(sorted(frozenset(function.config) ^ should.config))
        yield DriftFinding(about, "bad", f"has other settings: {differs}", MIGRATE)


def _owners(facts: AccessFacts) -> Iterator[DriftFinding]:
    for kind, name, owner in (
        *(("function", function.name, function.owner) for function in facts.functions),
        *((relation.kind, relation.name, relation.owner) for relation in facts.relations),
    ):
        if owner != facts.owner and kind != "column":
            yield DriftFinding(
                f"{kind} {name}", "bad", f"belongs to {owner}, the schema to {facts.owner}",
                f"alter {kind} faultline.{name} owner to {facts.owner}",
            )  # fmt: skip


def _calls(facts: AccessFacts) -> Iterator[DriftFinding]:
    for function in facts.functions:
        due = _holders(facts, "function", function.name)
        for caller in sorted(frozenset(function.callers) - due):
            remedy = f"revoke all on function faultline.{function.name} from {_spelled(caller)}"
            yield DriftFinding(
                f"function {function.name}", "bad", f"{caller} may call it beyond any duty", remedy
            )
        for caller in sorted(due - frozenset(function.callers)):
            yield DriftFinding(
                f"function {function.name}", "bad", f"{caller} may not call it, as its duty asks", ROLES
            )


def _grants(facts: AccessFacts) -> Iterator[DriftFinding]:
    for relation in facts.relations:
        for grant in sorted(set(relation.granted) - _due(facts, relation)):
            role, _, privilege = grant.rpartition(" ")
            about = f"{relation.kind} {relation.name}"
            yield DriftFinding(
                about, "bad", f"{role} has {privilege} on it", _revoked(relation, role, privilege)
            )


def _due(facts: AccessFacts, relation: Relation) -> set[str]:
    """The expected grants of it: on a view those of duties, on the schema its usage, otherwise none."""
    if relation.kind == "view":
        return {f"{role} select" for role in _holders(facts, "view", relation.name)}
    if relation.kind == "schema":
        return {
            grant
            for grant in relation.granted
            if grant.endswith(" usage") and not grant.startswith("PUBLIC ")
        }
    return set()


def _revoked(relation: Relation, role: str, privilege: str) -> str:
    if relation.kind.startswith("future"):
        what = relation.kind.removeprefix("future ")
        rule = f"alter default privileges for role {relation.owner}"
        return f"{rule} revoke {privilege} on {what} from {_spelled(role)}"
    if relation.kind == "column":
        table, _, column = relation.name.partition(".")
        return f"revoke {privilege} ({column}) on faultline.{table} from {_spelled(role)}"
    where = "schema faultline" if relation.kind == "schema" else f"faultline.{relation.name}"
    return f"revoke {privilege} on {where} from {_spelled(role)}"


def _powers(facts: AccessFacts) -> Iterator[DriftFinding]:
    if not facts.groups:
        yield DriftFinding("roles", "warn", "no group roles were made: clients log in as the owner", ROLES)
    known = {power.role: power for power in facts.powers}
    for duty, role in sorted(facts.groups.items()):
        if role not in known:
            yield DriftFinding(f"role {role}", "bad", f"the group for {duty} is gone", ROLES)
    for power in facts.powers:
        yield from _power(facts, power)


def _power(facts: AccessFacts, power: Power) -> Iterator[DriftFinding]:
    for attribute in power.attributes:
        if power.role == facts.owner and attribute == "superuser":
            said = "owns the schema: whatever a verb does, it does as a superuser"
            yield DriftFinding(
                f"role {power.role}", "bad", said, "run `faultline roles create --own` as a superuser"
            )
        elif power.role == facts.owner and attribute == "login" and "superuser" not in power.attributes:
            said = "owns the schema and can log in: its password opens a way around every verb"
            yield DriftFinding(f"role {power.role}", "warn", said, "run `faultline roles create --own`")
        elif power.role != facts.owner or "superuser" not in power.attributes:
            remedy = f"alter role {power.role} no{attribute}"
            yield DriftFinding(f"role {power.role}", "bad", f"is more than it should be: {attribute}", remedy)


def _memberships(facts: AccessFacts) -> Iterator[DriftFinding]:
    """A group that is a member of another role has its rights, by inheriting them or by becoming it."""
    migrator = facts.groups.get("migrator")
    for power in facts.powers:
        for above in power.member_of:
            if power.role == facts.owner or (power.role == migrator and above == facts.owner):
                continue
            remedy = f"revoke {above} from {power.role}"
            yield DriftFinding(
                f"role {power.role}", "bad", f"is a member of {above}, and so is each of its members", remedy
            )


def _back_doors(facts: AccessFacts) -> Iterator[DriftFinding]:
    for door in facts.back_doors:
        if door.migrates and not door.inherits:
            continue
        how = "inherits" if door.inherits else "can become"
        yield DriftFinding(
            f"login {door.login}", "bad", f"{how} {door.through}, and so reaches {door.what}",
            f"revoke {door.through} from {door.login}, or from the role that it has it by",
        )  # fmt: skip


def _holders(facts: AccessFacts, kind: str, name: str) -> frozenset[str]:
    listed = role_grants()
    return frozenset(role for duty, role in facts.groups.items() if (duty, kind, name) in listed)


def _spelled(role: str) -> str:
    return "public" if role == "PUBLIC" else role
