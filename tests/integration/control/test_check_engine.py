"""What `check_engine` ends with where no engine is asked. What it says of one: tests/spark/test_cluster.py."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command


@pytest.mark.parametrize(
    ("names", "says"), [(["nowhere"], "Pipeline 'nowhere' does not exist"), ([], "SPARK_REMOTE: is not set")]
)
def test_a_call_that_cannot_be_used_ends_with_2(db, names, says, capsys, monkeypatch):
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    with pytest.raises(SystemExit) as ended:
        call_command("check_engine", *names, json=True)
    told = capsys.readouterr()
    assert ended.value.code == 2
    assert says.casefold() in told.err.casefold(), told.err
    assert json.loads(told.out)["error"]["text"]
