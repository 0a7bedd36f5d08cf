"""Render the Helm chart into plain manifests: deploy/kubernetes is what its default values give.

Usage: python scripts/chart.py. This is not Helm. It knows the handful of template forms that the chart keeps
to, and refuses any other, so that what the tests validate is what Helm makes of the same lines:

    {{- if PATH }}, {{- if not PATH }}, {{- if eq PATH "word" }}, {{- end }}    each a line of its own
    key: {{- toYaml PATH | nindent N }}                                         at the end of a line
    {{ PATH }}, {{ PATH | quote }}, {{ add PATH N }}                            anywhere
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "deploy/helm/faultline"
PLAIN = ROOT / "deploy/kubernetes"
SCALED = ROOT / "deploy/kubernetes-scaling"
SCALING = ("worker-scaling.yaml", "scaling-auth.yaml")

CONDITION = re.compile(r'\{\{- if (?:(not) |(eq) )?(\.[\w.]+)(?: "(\w+)")? \}\}')
BLOCK = re.compile(r"(\s*[\w-]+:) \{\{- toYaml (\.[\w.]+) \| nindent (\d+) \}\}")
INLINE = re.compile(r"\{\{ (?:(\.[\w.]+)(?: \| (quote))?|add (\.[\w.]+) (\d+)) \}\}")
HEADER = "# Made by scripts/chart.py from deploy/helm/faultline; change it there.\n"


class NotUnderstood(Exception):
    """A template holds a form that this renderer does not know."""


def values(**changes: Any) -> dict[str, Any]:
    """The chart's values, with changes by dotted name: values(**{"scaling.enabled": True})."""
    known: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    for name, value in changes.items():
        *path, last = name.split(".")
        place = known
        for part in path:
            place = place[part]
        place[last] = value
    return known


def render(template: str, values: dict[str, Any], release: str = "faultline") -> str:
    """One template with these values; empty when its condition is not met."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    top = {
        "Values": values,
        "Release": {"Name": release},
        "Chart": {"AppVersion": chart["appVersion"], "Name": chart["name"]},
    }
    lines: list[str] = []
    open_conditions: list[bool] = []
    for line in template.splitlines():
        if line == "{{- end }}":
            open_conditions.pop()
        elif condition := CONDITION.fullmatch(line):
            open_conditions.append(_holds(condition, top))
        elif all(open_conditions):
            lines.append(_line(line, top))
    if open_conditions:
        raise NotUnderstood("a condition without its end")
    return "".join(f"{line}\n" for line in lines)


def _holds(condition: re.Match[str], top: dict[str, Any]) -> bool:
    negated, compared, path, word = condition.groups()
    found = _find(path, top)
    if bool(compared) != (word is not None):
        raise NotUnderstood(condition[0])
    return found == word if compared else bool(found) is not bool(negated)


def _line(line: str, top: dict[str, Any]) -> str:
    if block := BLOCK.fullmatch(line):
        key, path, width = block.groups()
        dumped = yaml.safe_dump(_find(path, top), default_flow_style=False).rstrip("\n")
        return key + "".join(f"\n{' ' * int(width)}{part}" for part in dumped.split("\n"))
    done = INLINE.sub(lambda form: _inline(form, top), line)
    if "{{" in done or "}}" in done:
        raise NotUnderstood(line)
    return done


def _inline(form: re.Match[str], top: dict[str, Any]) -> str:
    path, quoted, added, number = form.groups()
    if added:
        return str(_find(added, top) + int(number))
    found = _find(path, top)
    if not isinstance(found, str | int | float):
        raise NotUnderstood(f"{form[0]} is not one word")
    return json.dumps(str(found)) if quoted else str(found)


def _find(path: str, top: dict[str, Any]) -> Any:
    found: Any = top
    for part in path.removeprefix(".").split("."):
        if part not in found:
            raise NotUnderstood(f"{path} is no value of the chart")
        found = found[part]
    return found


def manifests(values: dict[str, Any], release: str = "faultline") -> dict[str, str]:
    """Every manifest that these values give, by the name of its template."""
    rendered = {
        file.name: render(file.read_text(), values, release)
        for file in sorted((CHART / "templates").glob("*.yaml"))
    }
    return {name: text for name, text in rendered.items() if text.strip()}


def plain() -> dict[Path, str]:
    """What deploy/kubernetes and the folder with a scaler hold beside their kustomizations."""
    usual = {PLAIN / name: HEADER + text for name, text in manifests(values()).items()}
    scaled = manifests(values(**{"scaling.enabled": True}))
    return usual | {SCALED / name: HEADER + scaled[name] for name in SCALING}


def main() -> None:
    for file, text in plain().items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        print(file.relative_to(ROOT), file=sys.stderr)


if __name__ == "__main__":
    main()
