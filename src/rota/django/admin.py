"""Page of Django's admin: runs with their errors and logs, to be cancelled and retried by who may change them."""

from __future__ import annotations

from typing import Any

import msgspec
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from rota.core.runs.redaction import Discreet
from rota.core.runs.run import RunFilter
from rota.core.states import RunState
from rota.django.application import the_app
from rota.django.models import Run
from rota.errors import NotFound, RotaError

_LINES = 200


@admin.register(Run)
class RunAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """List runs, show one, cancel and retry it; nothing is read through the model."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_urls(self) -> list[URLPattern]:
        def wrapped(view: Any) -> Any:
            return self.admin_site.admin_view(view)

        return [
            path("", wrapped(self.changelist_view), name="rota_run_changelist"),
            path("<str:object_id>/change/", wrapped(self.change_view), name="rota_run_change"),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        self._require_view(request)
        asked = {name: request.GET.get(name) or None for name in ("state", "job", "before")}
        facts: dict[str, Any] = {"states": list(RunState), "asked": asked, "runs": [], "next": None}
        try:
            states = (RunState(asked["state"]),) if asked["state"] in list(RunState) else ()
            found = the_app().blocking.page(RunFilter(states=states, job=asked["job"]), before=asked["before"])
            facts |= {"runs": found.runs, "next": found.next}
        except RotaError as error:
            messages.error(request, str(error))
        return self._page(request, "runs", "Runs", facts)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        self._require_view(request)
        client = the_app().blocking
        try:
            if request.method == "POST":
                return self._changed(request, object_id)
            found = client.get(object_id)
            discreet = Discreet(found)
            run, attempts, lines = discreet.run(), client.attempts(found.id), client.logs(found.id, tail=_LINES)
        except NotFound as error:
            raise Http404(error.message) from error
        facts = {
            "run": run,
            "payload": _indented(run.payload),
            "result": None if run.result is None else _indented(run.result),
            "attempts": [discreet.attempt(attempt) for attempt in attempts],
            "lines": [discreet.line(line) for line in lines],
            "may_change": self.has_change_permission(request),
            "is_final": run.state.is_final,
        }
        return self._page(request, "run", f"{run.job} {run.id[-8:]}", facts)

    def _changed(self, request: HttpRequest, run_id: str) -> HttpResponse:
        if not self.has_change_permission(request):
            raise PermissionDenied
        client, actor = the_app().blocking, f"django:{request.user.get_username()}"
        try:
            if "cancel" in request.POST:
                run = client.cancel(run_id, actor=actor)
                messages.info(request, f"The run is {run.state}.")
            elif "retry" in request.POST:
                run_id = client.retry(run_id, actor=actor).id
                messages.info(request, "This is the new run.")
        except NotFound:
            raise
        except RotaError as error:
            messages.error(request, str(error))
        return HttpResponseRedirect(reverse(f"{self.admin_site.name}:rota_run_change", args=[run_id]))

    def _require_view(self, request: HttpRequest) -> None:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied

    def _page(self, request: HttpRequest, name: str, title: str, facts: dict[str, Any]) -> HttpResponse:
        context = {**self.admin_site.each_context(request), "title": title, "opts": self.model._meta, **facts}
        return TemplateResponse(request, f"admin/rota/{name}.html", context)


def _indented(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
