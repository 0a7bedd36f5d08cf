"""Jobs in Django's admin, to be looked at."""

from typing import Any, Final

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.db import DataError
from django.db.models import QuerySet
from django.http import HttpRequest

from faultline.integrations.django.conf import database_alias
from faultline.integrations.django.models import JobRow
from faultline.job import JobState

PAGE_ONLY: Final = ("args", "result", "error", "damage")
"""Columns of a job's own page: for a sorted list the database would read the documents of all jobs."""


class StateFilter(admin.SimpleListFilter):
    """The five states, without asking the database which there are."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state.value, state.value) for state in JobState]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[JobRow]") -> "QuerySet[JobRow]":
        return queryset.filter(state=self.value()) if self.value() else queryset


class QueueFilter(admin.SimpleListFilter):
    """The queues that there are."""

    title = "queue"
    parameter_name = "queue"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        from django.db import connections

        from faultline.integrations.django.carrier import DjangoCarrier
        from faultline.store import calls

        infos = DjangoCarrier(connections[database_alias()]).run(calls.list_queues())
        return [(info.queue, info.queue) for info in infos]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[JobRow]") -> "QuerySet[JobRow]":
        return queryset.filter(queue=self.value()) if self.value() else queryset


class TaskFilter(admin.SimpleListFilter):
    """The tasks that this process knows, and the one that is looked for."""

    title = "task"
    parameter_name = "task"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        from faultline.integrations.django.project import app

        known = {spec.name for spec in app.registry} | ({self.value()} if self.value() else set())
        return [(name, name) for name in sorted(known)]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[JobRow]") -> "QuerySet[JobRow]":
        return queryset.filter(task=self.value()) if self.value() else queryset


class JobList(ChangeList):
    """The list of jobs: without the columns that it does not show."""

    def get_queryset(self, *args: Any, **kwargs: Any) -> "QuerySet[JobRow]":
        return super().get_queryset(*args, **kwargs).defer(*PAGE_ONLY)

    def get_results(self, request: HttpRequest) -> None:
        """A value that no text can hold, or a wrong pattern, is told by the query alone."""
        try:
            super().get_results(request)
        except (DataError, ValueError) as error:
            raise IncorrectLookupParameters(error) from error


@admin.register(JobRow)
class JobAdmin(admin.ModelAdmin):
    """A list of jobs, newest first, and a page of each; nothing can be changed here."""

    list_display = (
        "id",
        "task",
        "queue",
        "state",
        "attempt",
        "run_at",
        "claimed_at",
        "finished_at",
        "worker",
    )
    list_filter = (StateFilter, QueueFilter, TaskFilter)
    search_fields = ("=id", "=key")
    show_full_result_count = False
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> "QuerySet[JobRow]":
        return super().get_queryset(request).using(database_alias())

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return JobList

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
