"""The canonical form in Python; helper tests of the SQL form run over the same corpus."""

from __future__ import annotations

import json
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery_api.domain.errors import BadInput
from workers.evidence.canonical import (
    ABSENT,
    Number,
    UncanonicalContent,
    batch_digest,
    batch_digest_add,
    canonical,
    content_digest,
    content_parse,
    digest_given,
    digest_words,
    entry_digest,
    entry_digests,
    json_written,
    number_canonical,
    payload_digest,
)

CORPUS = json.loads((Path(__file__).parents[1] / "contract" / "canonical_corpus.json").read_text(encoding="utf-8"))

CONTENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.decimals(allow_nan=False, allow_infinity=False, places=4)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def written(content):
    """Some other writer's spelling: escapes everything, members reversed, trailing zeros, exponents."""
    if isinstance(content, dict):
        return "{" + " , ".join(f"{json.dumps(k)}: {written(content[k])}" for k in reversed(content)) + "}"
    if isinstance(content, list):
        return "[" + ",".join(map(written, content)) + " ]"
    if isinstance(content, Decimal):
        return f"{content:f}00" if "." in f"{content:f}" else f"{content:f}.0e0"
    if isinstance(content, int) and not isinstance(content, bool):
        return f"{content}.0E+00"
    return json.dumps(content)


def test_every_content_of_the_corpus_has_its_canonical_text():
    wrong = []
    for case in CORPUS["cases"]:
        try:
            text = canonical(content_parse(case["json"]))
        except UncanonicalContent:
            text = None
        if text != case["canonical"]:
            wrong.append((case["says"], text))
    assert not wrong


@given(CONTENTS)
def test_spelling_does_not_change_the_canonical_text(content):
    text = canonical(content)
    assert canonical(content_parse(written(content))) == text
    assert canonical(content_parse(text)) == text


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30))
def test_a_number_keeps_its_value_and_loses_its_spelling(number):
    text = number_canonical(str(number))
    assert Decimal(text) == number
    assert "e" not in text.lower()
    assert not ("." in text and text.endswith("0"))


def test_numbers_stop_where_a_database_stops():
    assert number_canonical("1e131071") == "1" + "0" * 131071
    assert number_canonical("1e-16383") == "0." + "0" * 16382 + "1"
    assert number_canonical("0e200000") == "0"
    for beyond in ("1e131072", "1e-16384", "1." + "0" * 16384, "1e99999999999", "NaN", "Infinity", "0x10", "１"):
        with pytest.raises(UncanonicalContent):
            number_canonical(beyond)
    for constant in ("NaN", "[-Infinity]"):
        with pytest.raises(UncanonicalContent):
            content_parse(constant)


def test_null_missing_and_empty_are_three_contents():
    digests = {content_digest(content) for content in (None, ABSENT, "")}
    assert len(digests) == 3
    assert content_digest(ABSENT, "delete") == content_digest(None, "delete")
    assert content_digest(ABSENT) == sha256(b"").hexdigest()


def test_nesting_too_deep_is_refused_and_does_not_crash():
    for depth in (2_000, 100_000):
        with pytest.raises(UncanonicalContent):
            canonical(content_parse("[" * depth + "]" * depth))


def test_payloads_differ_by_op_key_and_content():
    digest = content_digest({"n": 1})
    payloads = {
        payload_digest(op, key, digest)
        for op in ("insert", "update")
        for key in ("a", "", None, "null", 'a"', "\ud83d")
    }
    assert len(payloads) == 12
    assert payload_digest("insert", "k", digest) == sha256(f'insert "k" {digest}'.encode()).digest()
    assert digest_given(digest.upper()) == digest
    assert digest_given("V1:Ab") == "V1:Ab"


@given(st.lists(st.binary(min_size=32, max_size=32)), st.integers(0, 10))
def test_batch_digest_is_the_exact_sum_of_limbs_in_any_order_and_split(digests, cut):
    column = pa.array(digests, pa.binary(32))
    sums = [sum(int.from_bytes(d[at : at + 8], "big", signed=True) for d in digests) for at in range(0, 32, 8)]
    assert batch_digest(column) == ":".join(map(str, sums))
    assert batch_digest(pa.chunked_array([column[cut:], column[:cut]])) == batch_digest(column)
    assert batch_digest_add(batch_digest(column[cut:]), batch_digest(column[:cut])) == batch_digest(column)


def test_entry_digest_tells_lane_and_coordinate_apart():
    payload = bytes(32)
    places = [("0", 1, 0), ("0", 1, 1), ("0", 0, 1), ("00", 1, 0), ("0", -1, 0), ("0", 2**63 - 1, -(2**63))]
    digests = entry_digests(*zip(*places, strict=True), [payload] * len(places))
    assert len(set(digests.to_pylist())) == len(places)
    assert digests[0].as_py() == entry_digest("0", 1, 0, payload)


def test_digest_words_refuses_what_is_not_a_column_of_digests():
    for column in (pa.array([b"short"]), pa.array([bytes(32), None], pa.binary(32))):
        with pytest.raises(BadInput):
            digest_words(column)
    column = pa.chunked_array([[bytes(32)], [b"\x01" * 32]], pa.binary(32))
    assert (digest_words(column)[:, 0] == [0, 0x0101010101010101]).all()


def test_written_json_keeps_its_numbers():
    text = '{"n": 12345678901234567890, "d": 0.1234567890123456789, "e": [1E2, -0.0, "\\u00e9"]}'
    assert content_parse(json_written(content_parse(text))) == content_parse(text)
    assert "0.1234567890123456789" in json_written(content_parse(text))
    assert json_written(Number("1.50")) == "1.50"
