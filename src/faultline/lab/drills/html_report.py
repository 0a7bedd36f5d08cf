"""The report: one HTML page with timelines, verdicts and counts, and nothing it has to fetch or run.

Its own policy allows one style sheet, by its hash, and nothing else: no script, no font, no picture from
elsewhere.
"""

from base64 import b64encode
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from typing import Final

from faultline.lab.drills.drill_results import DrillResult, RehearsedRun, Versions
from faultline.lab.drills.view.timeline import Timeline
from faultline.lab.drills.view.timeline_svg import draw

STYLE: Final = """
body { font: 15px/1.5 ui-sans-serif, system-ui, sans-serif; color: #1e293b; background: #f8fafc;
       max-width: 1010px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; }
h2 { margin: 0; font-size: 1.2rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem; }
section { background: #fff; border: 1px solid #e2e8f0; border-radius: 8px;
          padding: 1.1rem 1.3rem; margin: 1.3rem 0; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; padding: .25rem .7rem .25rem 0; vertical-align: top; }
svg { max-width: 100%; height: auto; display: block; margin: .4rem 0; }
.kept { color: #15803d; font-weight: 600; } .broken { color: #b91c1c; font-weight: 700; }
.void { color: #b45309; font-weight: 700; } .skipped { color: #64748b; font-weight: 600; }
.quiet { color: #64748b; } .steps td { font-size: 13px; padding-top: .05rem; padding-bottom: .05rem; }
.when { text-align: right; white-space: nowrap; color: #64748b; font-variant-numeric: tabular-nums; }
.count { display: inline-block; background: #f1f5f9; border-radius: 4px;
         padding: 0 .5rem; margin: .15rem .3rem .15rem 0; }
summary { cursor: pointer; color: #475569; }
"""


def page(results: list[DrillResult], versions: Versions) -> str:
    """The whole report as one page."""
    policy = f"default-src 'none'; style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'"
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    words = (
        f"Faultline {versions.faultline}, PostgreSQL {versions.postgresql}, Python {versions.python}, "
        f"psycopg {versions.driver}; {versions.place}; {made}"
    )
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width"><title>Faultline drills</title>',
            f"<style>{STYLE}</style></head><body><h1>Faultline drills</h1>",
            f'<p class="quiet">{escape(words)}</p>',
            *_overview(results),
            *(part for result in results if result.runs for part in _section(result)),
            "</body></html>",
        ]
    )


def _overview(results: list[DrillResult]) -> Iterable[str]:
    yield "<section><table><tr><th>drill</th><th>verdict</th><th>what happens</th><th></th></tr>"
    for result in results:
        name, drill = escape(result.drill.name), result.drill
        link = f'<a href="#{name}">{name}</a>' if result.runs else name
        last = f"{result.seconds:.1f} s" if result.runs else ""
        what = escape(drill.summary if result.runs else f"{drill.summary}: {result.skipped}")
        cells = f"<td>{link}</td><td>{_word(result.word)}</td><td>{what}</td>"
        yield f'<tr>{cells}<td class="when">{last}</td></tr>'
    yield "</table></section>"


def _section(result: DrillResult) -> Iterable[str]:
    run = result.told
    name = escape(result.drill.name)
    yield f'<section id="{name}"><h2>{name} {_word(result.word)}</h2>'
    yield f'<p class="quiet">{escape(result.drill.summary)}'
    if len(result.runs) > 1:
        kept = sum(one.verdict.kept for one in result.runs)
        yield f"; {kept} of {len(result.runs)} runs kept every promise"
    yield "</p>"
    for title, timeline in run.timelines:
        yield from _story(title or result.drill.name, timeline)
    yield from _verdict(run)
    yield "</section>"


def _story(title: str, timeline: Timeline) -> Iterable[str]:
    yield f"<h3>{escape(title)}</h3>"
    if not timeline.moments:
        yield '<p class="quiet">no trace of the job</p>'
        return
    yield draw(timeline.moments, title)
    yield '<details><summary>step by step</summary><table class="steps">'
    first = timeline.moments[0].at
    for moment in timeline.moments:
        after = (moment.at - first).total_seconds()
        style = ' class="broken"' if moment.what == "refused" else ""
        yield (
            f'<tr><td class="when">{after:.3f} s</td><td>{escape(moment.who)}</td>'
            f"<td{style}>{escape(moment.words)}</td></tr>"
        )
    yield "</table></details>"


def _verdict(run: RehearsedRun) -> Iterable[str]:
    yield "<h3>Verdict</h3><table>"
    for one in run.verdict.findings:
        told = f'{escape(one.promise)}<br><span class="quiet">{escape(one.evidence)}</span>'
        yield f"<tr><td>{_word('kept' if one.kept else 'BROKEN')}</td><td>{told}</td></tr>"
    for what in run.verdict.unseen:
        told = f"the fault did not happen: never seen, {escape(what)}"
        yield f"<tr><td>{_word('VOID')}</td><td>{told}</td></tr>"
    yield "</table><p>"
    for what, times in run.verdict.counts.items():
        yield f'<span class="count">{escape(what)} <b>{times}</b></span>'
    yield "</p>"


def _word(word: str) -> str:
    return f'<span class="{word.lower()}">{word}</span>'
