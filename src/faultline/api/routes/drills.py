"""Drills: what can be rehearsed, and rehearsals under way. Running one takes an admin."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from pydantic import ConfigDict

from faultline.api import models
from faultline.api.needs import Admin, Reader, TheDesk
from faultline.errors import JobNotFound

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


class DrillWish(models.Model):
    """Where to play it: on a private server, or in a database of its own beside this one."""

    model_config = ConfigDict(extra="forbid")

    where: Literal["embedded", "database"] = "embedded"


@router.get("/drills")
async def list_drills(caller: Reader) -> list[DrillView]:
    """The faults that can be rehearsed."""
    from faultline.drills.registry import DRILLS  # late: most servers never play one

    return [DrillView.model_validate(drill) for drill in DRILLS.values()]


@router.post("/drills/{name}/runs", status_code=202)
async def start_drill(desk: TheDesk, caller: Admin, name: DrillName, wish: DrillWish) -> RunView:
    """Rehearse a fault against real processes; one at a time. The run tells its progress and verdict."""
    from faultline.drills.registry import DRILLS

    if name not in DRILLS:
        raise JobNotFound(f"no drill is called {name}")
    return RunView.model_validate(desk.drilling.start(name, wish.where))


@router.get("/drills/runs")
async def list_runs(desk: TheDesk, caller: Admin) -> list[RunView]:
    """The rehearsals this server process has started, newest first."""
    return [RunView.model_validate(run) for run in reversed(desk.drilling.runs.values())]


@router.get("/drills/runs/{run_id}")
async def get_run(desk: TheDesk, caller: Admin, run_id: RunId) -> RunView:
    """One rehearsal."""
    return RunView.model_validate(desk.drilling.get(run_id))
