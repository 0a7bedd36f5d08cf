"""The page's tables of failures: a killed worker, a frozen one that comes back."""

from typing import Any

Row = dict[str, Any]

TITLES = {
    "zombie": (
        "A frozen worker comes back after the job was done",
        "A is stopped (SIGSTOP) in mid-handler past its lease, B runs the job and ends it, A resumes.",
    ),
    "zombie_mid": (
        "A frozen worker comes back while another runs the job",
        "A is stopped past its lease and resumes a second after B has begun: does A end B's attempt?",
    ),
}


CARE = (
    "\"Changed the job\" compares the library's own rows before and after A's return. Systems on "
    "redis are compared by the lengths of their queues, and awa's tables were seen empty for running "
    "and finished jobs: a *no* there proves little. A's INSERT is a plain one on a connection of the "
    "handler's own, which no queue can fence; where it did not land, A's handler did not come to "
    "its end. What Faultline does fence is `job.complete`."
)


def sections(data: dict[str, Any]) -> list[str]:
    """Every failure that was rehearsed."""
    lines = crash(data) if data.get("crash") else []
    for phase in TITLES:
        if data.get(phase):
            lines += zombie(phase, data[phase])
    return [*lines, "", CARE]


def crash(data: dict[str, Any]) -> list[str]:
    """Seconds until another worker runs the job of one that was killed."""
    lines = [
        "", "### A worker is killed in mid-job", "",
        "Two idle workers, one job of 60 s; SIGKILL to the one that took it. Seconds until the other starts "
        f"it, waited for {data['config']['crash_wait']:g} s at most.", "",
        "| system | by default | recovery profile | what the profile is |", "| --- | --- | --- | --- |",
    ]  # fmt: skip
    for system, found in _ordered(data["crash"]):
        profile = data["meta"][system]["recovery"]
        default, recovery = (_rerun(found.get(name)) for name in ("default", "recovery"))
        lines.append(f"| {_name(system)} | {default} | {recovery} | {profile} |")
    return lines


def _rerun(row: Row | None) -> str:
    if row is None:
        return ""
    if "error" in row:
        return "could not be tested"
    return f"run again after {row['rerun_after_s']:.1f} s" if row["rerun"] else "not run again"


def zombie(phase: str, found: dict[str, Row]) -> list[str]:
    """What the late worker could still do."""
    title, story = TITLES[phase]
    lines = [
        "", f"### {title}", "", story, "",
        "| system | B ran it after | A's return changed the job | A's own INSERT landed | refusal noted |",
        "| --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    return lines + [_zombie_line(phase, system, row) for system, row in _ordered(found)]


def _zombie_line(phase: str, system: str, row: Row) -> str:
    if "error" in row:
        return f"| {_name(system)} | could not be tested | | | |"
    landed = "yes" if any(effect["by_zombie"] for effect in row["effects"]) else "no"
    recorded = ", ".join(str(each["reason"]) for each in row.get("refusals", [])) or "no"
    return f"| {_name(system)} | {_when(row)} | {_changed(phase, row)} | {landed} | {recorded} |"


def _when(row: Row) -> str:
    if "rerun_after_s" not in row:
        return "never"
    return f"{row['rerun_after_s']:.1f} s{' (manual call)' if row['manual_recover_used'] else ''}"


def _changed(phase: str, row: Row) -> str:
    if "rerun_after_s" not in row:
        return "not tested: B never ran it"
    if phase == "zombie_mid" and not row["b_running_at_snapshot"]:
        return "B had ended before the look: see the JSON"
    return "no" if row["rows_before_cont"] == row["rows_after_cont"] else "**yes**"


def _ordered(found: dict[str, Row]) -> list[tuple[str, Row]]:
    """Our own first, then by name: they ran at once and ended in any order."""
    return sorted(found.items(), key=lambda pair: (not pair[0].startswith("faultline"), pair[0]))


def _name(system: str) -> str:
    return f"**{system}**" if system.startswith("faultline") else system
