"""Sources and sinks. The web process opens neither: a test or a reading is an intent, and its result is shown."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.kinds import Kind, kind_get, kinds_offered
from recovery_api.domain.kinds.base import KINDS
from recovery_api.models import Intent
from recovery_api.presets import preset_get, preset_names
from recovery_api.rows import Row, end_as_row
from recovery_api.schema import operation
from recovery_api.selectors.ends import sink_get, sink_list, source_get, source_list
from recovery_api.serializers.about import KindShape, PresetShape
from recovery_api.serializers.fields import Body, Choice, Name, OptionsField, Query, Text
from recovery_api.serializers.shapes import SinkShape, SourceShape, page_of
from recovery_api.serializers.work import IntentShape
from recovery_api.services.ends import (
    connection_test_request,
    sink_create,
    sink_update,
    source_create,
    source_update,
)
from recovery_api.services.presets import Filled, preset_fill
from recovery_api.services.retirement import sink_retire, source_retire
from recovery_api.views.base import ApiView, accepted, answer, segment
from recovery_api.views.conditional import tagged, versions_read
from recovery_api.views.idempotent import idempotent
from recovery_api.views.named import retired, work_asked
from recovery_api.views.paging import PageQuery, page, paged
from recovery_api.views.permission import actor


def _example(end: str, name: str) -> Row:
    kind = kinds_offered(end)[0]
    return {"name": name, "kind": kind.name, "options": dict(kind.example)}


SOURCE_EXAMPLE, SINK_EXAMPLE = _example("source", "orders"), _example("sink", "mail")


class EndsQuery(PageQuery):
    kind = Text(help_text="Only this kind.")


PRESET = "A known library, whose table's options are filled where they are left out (`GET /presets`)."


class EndBody(Body):
    name = Name()
    kind = Text(required=False, help_text="May be left out where a preset is given.")
    preset = Text(required=False, help_text=PRESET)
    options = OptionsField(
        required=False, help_text="Options of the kind; credentials as env:FENCEPOST_END_NAME or file:/path."
    )


class ConnectionTestBody(Body):
    end = Choice(["source", "sink"])
    kind = Text(required=False, help_text="May be left out where a preset is given.")
    preset = Text(required=False, help_text=PRESET)
    options = OptionsField(required=False)


class OptionsBody(Body):
    options = OptionsField(help_text="All of them: what is left out takes its default.")


CHANGE = "Give it other options.\n\nIts test is dropped, and waiting plans lapse. While a recovery runs on it: 409."


class _Ends(ApiView):
    """A list of ends. `word` is source or sink."""

    query_class: ClassVar[type[Query]] = EndsQuery
    word: ClassVar[str]

    def ends(self) -> QuerySet[Any]:
        found: QuerySet[Any] = source_list() if self.word == "source" else sink_list()
        return found.filter(kind=self.asked["kind"]) if "kind" in self.asked else found

    def listed(self, request: Request) -> Response:
        return page(request, self.asked, self.ends(), ("name",), end_as_row)

    def created(self, request: Request) -> Response:
        given = EndBody.read(request.data)
        filled = _filled(self.word, given)
        create = source_create if self.word == "source" else sink_create
        end = create(given["name"], filled.kind, filled.options, actor=actor(request), now=timezone.now())
        return answer(end_as_row(end, actor(request)), 201, location=f"/api/v1/{self.word}s/{segment(end.name)}")


class Sources(_Ends):
    word = "source"

    @operation("list_sources", "Every source, by name.", answer=page_of(SourceShape), query=EndsQuery, tag="sources")
    def get(self, request: Request) -> Response:
        return self.listed(request)

    @operation(
        "create_source",
        "Register a source.\n\nIt is not opened: test it first with `POST /connection-tests`, or afterwards.",
        answer=SourceShape,
        status=201,
        body=EndBody,
        request_example=SOURCE_EXAMPLE,
        tag="sources",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        return self.created(request)


class Sinks(_Ends):
    word = "sink"

    @operation("list_sinks", "Every sink, by name.", answer=page_of(SinkShape), query=EndsQuery, tag="sinks")
    def get(self, request: Request) -> Response:
        return self.listed(request)

    @operation(
        "create_sink",
        "Register a sink.\n\nIt is not opened: test it first with `POST /connection-tests`, or afterwards.",
        answer=SinkShape,
        status=201,
        body=EndBody,
        request_example=SINK_EXAMPLE,
        tag="sinks",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        return self.created(request)


class SourceOne(ApiView):
    @operation(
        "show_source", "One source, with its last test.", answer=SourceShape, is_named=True, errors=[404], tag="sources"
    )
    def get(self, request: Request, name: str) -> Response:
        source = source_get(name)
        return tagged(answer(end_as_row(source, actor(request))), source)

    @operation(
        "update_source", CHANGE, answer=SourceShape, body=OptionsBody, is_named=True, errors=[404, 412], tag="sources"
    )
    def patch(self, request: Request, name: str) -> Response:
        given, read = OptionsBody.read(request.data), versions_read(request)
        source = source_update(source_get(name), given["options"], actor=actor(request), now=timezone.now(), read=read)
        return tagged(answer(end_as_row(source)), source)


class SinkOne(ApiView):
    @operation(
        "show_sink",
        "One sink, with its last test and what it last said of itself.",
        answer=SinkShape,
        is_named=True,
        errors=[404],
        tag="sinks",
    )
    def get(self, request: Request, name: str) -> Response:
        sink = sink_get(name)
        return tagged(answer(end_as_row(sink, actor(request))), sink)

    @operation("update_sink", CHANGE, answer=SinkShape, body=OptionsBody, is_named=True, errors=[404, 412], tag="sinks")
    def patch(self, request: Request, name: str) -> Response:
        given, read = OptionsBody.read(request.data), versions_read(request)
        sink = sink_update(sink_get(name), given["options"], actor=actor(request), now=timezone.now(), read=read)
        return tagged(answer(end_as_row(sink)), sink)


class SourceRetire(ApiView):
    @retired("retire_source", "A source", shape=SourceShape, tag="sources")
    def post(self, request: Request, name: str, confirm: str) -> Row:
        return end_as_row(source_retire(source_get(name), confirm, actor=actor(request), now=timezone.now()))


class SinkRetire(ApiView):
    @retired("retire_sink", "A sink", shape=SinkShape, tag="sinks")
    def post(self, request: Request, name: str, confirm: str) -> Row:
        return end_as_row(sink_retire(sink_get(name), confirm, actor=actor(request), now=timezone.now()))


class SourceTest(ApiView):
    @work_asked("test_source", "Test a registered source: an intent whose result is the report.", tag="sources")
    def post(self, request: Request, name: str) -> Intent:
        return _test(request, source=source_get(name))


class SinkTest(ApiView):
    @work_asked("test_sink", "Test a registered sink: an intent whose result is the report.", tag="sinks")
    def post(self, request: Request, name: str) -> Intent:
        return _test(request, sink=sink_get(name))


class ConnectionTests(ApiView):
    @operation(
        "test_connection",
        "Test what is not registered yet: an intent whose result is the report.",
        answer=IntentShape,
        status=202,
        body=ConnectionTestBody,
        request_example={"end": "source", **{name: SOURCE_EXAMPLE[name] for name in ("kind", "options")}},
        tag="sources",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        given = ConnectionTestBody.read(request.data)
        filled = _filled(given["end"], given)
        return accepted(_test(request, end=given["end"], kind=filled.kind, options=filled.options))


class KindsQuery(Query):
    end = Choice(["source", "sink"])


class Kinds(ApiView):
    query_class = KindsQuery

    @operation(
        "list_kinds",
        "The kinds of sources and sinks, with their options.",
        answer=page_of(KindShape),
        query=KindsQuery,
        tag="sources",
    )
    def get(self, request: Request) -> Response:
        kinds = [kind_get(name) for name in KINDS]
        rows = [_kind_as_row(kind) for kind in kinds if self.asked.get("end", kind.end) == kind.end]
        return paged(request, self.asked, rows, None)


class PresetsQuery(Query):
    end = Choice(["source", "sink"])


class Presets(ApiView):
    query_class = PresetsQuery

    @operation(
        "list_presets",
        "The known libraries: what a preset fills, and what an audit may say of the table.",
        answer=page_of(PresetShape),
        query=PresetsQuery,
        tag="sources",
    )
    def get(self, request: Request) -> Response:
        rows = [preset_get(name).as_row() for name in preset_names(self.asked.get("end", ""))]
        return paged(request, self.asked, rows, None)


def _filled(end: str, given: dict[str, Any]) -> Filled:
    return preset_fill(end, given.get("kind"), given.get("preset"), given.get("options", {}))


def _test(request: Request, **what: Any) -> Intent:
    return connection_test_request(actor=actor(request), now=timezone.now(), **what)


def _kind_as_row(kind: Kind) -> Row:
    shown = ("name", "says", "type", "default", "is_required", "minimum", "maximum")
    return {
        "name": kind.name,
        "end": kind.end,
        "label": kind.label,
        "says": kind.says,
        "shows": list(kind.shows),
        "example": dict(kind.example),
        "installs": kind.installer.what if kind.installer else None,
        "archetype": str(kind.archetype) if kind.archetype else None,
        "options": [
            {**{name: getattr(option, name) for name in shown}, "choices": [str(one) for one in option.choices]}
            for option in kind.options
        ],
    }
