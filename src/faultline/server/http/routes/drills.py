"""Drills, of a server that was started with `--drills`: the list, and runs. Running one takes an admin."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from pydantic import ConfigDict

from faultline.errors import JobNotFound
from faultline.server.http import models
from faultline.server.http.dependencies import Admin, Reader, TheContext

router = APIRouter(tags=["drills"])

RunId = Annotated[str, Path(min_length=1, max_length=32, pattern="^[0-9a-f]+$")]
DrillName = Annotated[str, Path(min_length=1, max_length=60, pattern="^[a-z][a-z-]*$")]


class DrillView(models.Model):
    """A fault that can be rehearsed."""

    name: str
    summary: str
    needs: str


class RunView(models.Model):
    """A rehearsal: what has happened so far, and the verdict once it has ended."""

    id: str
    drill: str
    where: Literal["embedded", "database"]
    state: Literal["running", "kept", "broken", "failed"]
    started_at: datetime
    ended_at: datetime | None
    progress: list[dict[str, Any]]
    verdict: dict[str, Any] | None


class DrillRunRequest(models.Model):
    """Where to play it: on a private server, or in a database of its own beside this one."""

    model_config = ConfigDict(extra="forbid")

    where: Literal["embedded", "database"] = "embedded"


@router.get("/drills")
async def list_drills(caller: Reader) -> list[DrillView]:
    """The faults that can be rehearsed, on a server that was started with `--drills`."""
    from faultline.lab.drills.registry import DRILLS  # late: the lab is loaded where a drill is run

    return [DrillView.model_validate(drill) for drill in DRILLS.values()]


@router.post("/drills/{name}/runs", status_code=202)
async def start_drill(
    context: TheContext, caller: Admin, name: DrillName, wanted: DrillRunRequest
) -> RunView:
    """Rehearse a fault against real processes; one at a time. The run tells its progress and verdict."""
    from faultline.lab.drills.registry import DRILLS

    if name not in DRILLS:
        raise JobNotFound(f"no drill is called {name}")
    return RunView.model_validate(context.drill_runs.start(name, wanted.where))


@router.get("/drills/runs")
async def list_runs(context: TheContext, caller: Admin) -> list[RunView]:
    """The rehearsals this server process has started, newest first."""
    return [RunView.model_validate(run) for run in reversed(context.drill_runs.runs.values())]


@router.get("/drills/runs/{run_id}")
async def get_run(context: TheContext, caller: Admin, run_id: RunId) -> RunView:
    """One rehearsal."""
    return RunView.model_validate(context.drill_runs.get(run_id))
