"""The small files of a judgement."""

from __future__ import annotations

import pytest

from recovery_api.domain.errors import BadFile
from tests.unit.files.exports import written
from workers.evidence.files import base_read, coordinates_read, keys_read


def test_omissions_keys_and_base_read_from_their_small_files(tmp_path):
    for content, name, expected in (
        ('[2, "A/10"]', "o.json", ["2", "A/10"]),
        ('2\n{"coordinate": 5, "reason": "T-12"}\n', "o.jsonl", ["2", "5"]),
        ("coordinate,reason\n7001:42,x\n", "o.csv", ["7001:42"]),
        ("A/10\n16/B374D848\n", "o.txt", ["A/10", "16/B374D848"]),
        ("", "o.jsonl", []),
    ):
        assert coordinates_read(written(tmp_path, content, name)) == expected
    assert keys_read(written(tmp_path, "a\nkey with, comma\n", "keys")) == ["a", "key with, comma"]
    assert keys_read(written(tmp_path, '["a", "b\\nc"]', "keys")) == ["a", "b\nc"]
    assert keys_read(written(tmp_path, "", "keys")) == []
    assert base_read(written(tmp_path, '{"k": 1.50}', "base.json")) == {"k": "1.50"}
    for reader, content in ((coordinates_read, "{}"), (base_read, "[1]"), (keys_read, "[1]"), (base_read, "{")):
        with pytest.raises(BadFile):
            reader(written(tmp_path, content, "bad"))
