"""The command: filled, told, refused, and from nothing to a first audit in three commands."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import call_command

from recovery_api.models import Source
from recovery_api.presets import preset_get
from tests.integration.presets.library_table import Shop


def run(*words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one command."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command(*words, stdout=out, stderr=err)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def test_what_was_filled_is_told_and_what_was_given_wins(shop: Shop) -> None:
    shop.make(preset_get("marten"))
    given = ["--option", f"connection={shop.connection}", "--option", "key=tenant_id"]
    code, said, _ = run("sources", "add", "shop", "--preset", "marten", *given, "--here")
    assert code == 0
    assert "  coordinate = ['seq_id'] (preset marten)" in said or "  coordinate = seq_id (preset marten)" in said
    assert "  key = tenant_id\n" in said and "  table = mt_events (preset marten)\n" in said
    assert preset_get("marten").may_say in said
    body = json.loads(run("sources", "show", "shop", "--json")[1].splitlines()[-1])
    assert "key" not in body["filled"] and set(body["filled"]) >= {"table", "coordinate", "content"}
    assert Source.objects.get().options["preset"] == "marten"


def test_the_table_of_another_is_not_registered_and_the_missing_columns_are_named(shop: Shop) -> None:
    shop.make(preset_get("message-db"))
    given = ["--option", f"connection={shop.connection}", "--option", "schema=message_store", "--option"]
    code, said, _ = run("sources", "add", "shop", "--preset", "marten", *given, "table=messages", "--here")
    assert code == 2 and not Source.objects.exists()
    assert "it lacks seq_id, stream_id, version, bdata, timestamp, tenant_id, mt_dotnet_type, is_archived." in said
    assert "Filled by preset marten: committed_at=timestamp" in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--preset", "pg-boss"], "it is a job queue"),
        (["--preset", "river"], "Audit what your jobs write"),
        (["--preset", "martens"], "Did you mean 'marten'"),
        (["--preset", "nservicebus"], "preset nservicebus-inbox"),
        (["--preset", "watermill"], "Give option table"),
        (["--preset", "marten", "--kind", "memory"], "Leave the kind out"),
        (["--preset", "marten", "--file", "x.toml"], "stands beside"),
    ],
)
def test_a_preset_that_cannot_serve_is_refused_before_anything_starts(
    transactional_db: None, words: list[str], says: str
) -> None:
    code, _, err = run("sources", "add", "shop", *words, "--here")
    assert code == 2 and says in err and not Source.objects.exists()


def test_a_file_may_name_a_preset(shop: Shop, tmp_path: Any) -> None:
    file = tmp_path / "shop.toml"
    file.write_text(f'name = "shop"\npreset = "axon"\n[options]\nconnection = "{shop.connection}"\n')
    assert run("sources", "add", "--file", str(file), "--no-test")[0] == 0
    assert Source.objects.get().options["coordinate"] == ["globalindex"]


def test_every_library_is_listed_and_each_is_told_whole(transactional_db: None) -> None:
    listed = run("sources", "presets")[1]
    assert "marten  audits  Marten\n" in listed and "pg-boss  refused  pg-boss\n" in listed
    told = run("sources", "presets", "watermill")[1]
    assert "coordinate = transaction_id,offset" in told and "github.com/ThreeDotsLabs/watermill-sql" in told
