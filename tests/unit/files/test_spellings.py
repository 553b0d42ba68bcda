"""Coordinates of files: every spelling, one decision over all files."""

from __future__ import annotations

import pytest

from recovery_api.domain.coordinates import Spelling
from recovery_api.domain.errors import BadCoordinate, BadInput
from tests.unit.files.exports import line, positions, read, written
from workers.evidence import schemas
from workers.evidence.files import SpellingSigns, events_read


@pytest.mark.parametrize("text", ["A", "A/", "G/1", "A/1/2", "-A/10", "1.5", "", "7001:", "12 34", "0x10", "１２"])
def test_malformed_coordinates_are_refused(tmp_path, text):
    """RC-11."""
    with pytest.raises(BadCoordinate):
        read(written(tmp_path, line(text) + b"\n"))


@pytest.mark.parametrize("number", ["1.0", "1e3", "18446744073709551616", "-9223372036854775809", "true"])
def test_numbers_that_are_no_coordinate_are_refused(tmp_path, number):
    content = f'{{"coordinate":{number},"op":"insert","key":"k","value":1}}\n'
    with pytest.raises(BadCoordinate):
        read(written(tmp_path, content))


def test_four_spellings_of_a_log_position_are_one_coordinate(tmp_path):
    """RC-11: FF/FFFFFFFF and 100/0 are one apart; 9/FFFFFF00 < A/10."""
    spelled = ["FF/FFFFFFFF", "100/0", "9/FFFFFF00", "A/10", "a/10", "A/00000010", 42949672976, "42949672976"]
    _, table = read(written(tmp_path, b"".join(line(text) + b"\n" for text in spelled)))
    held = positions(table)
    assert held[1] - held[0] == 1
    assert held[2] < held[3]
    assert len(set(held[3:])) == 1


def test_spelling_is_decided_over_all_files_never_per_value(tmp_path):
    signs = SpellingSigns()
    history = events_read(written(tmp_path, line("A/10") + b"\n"), signs)
    accepted = events_read(written(tmp_path, line(42949672976) + b"\n", "accepted.jsonl"), signs)
    spelling = signs.decide()
    assert spelling is Spelling.PG_LSN
    assert positions(history.table(spelling, schemas.HISTORY)) == positions(accepted.table(spelling, schemas.ACCEPTED))


def test_rc_18_unsigned_coordinates_turned_negative_meet_when_declared_and_are_ambiguous_when_not(tmp_path):
    """RC-18: 5 < 2^63-1 < 2^63 < 2^64-1, and zero; undeclared, the sign is ambiguous."""
    unsigned = [5, 9223372036854775807, 9223372036854775808, 18446744073709551615, 0]
    signed = [5, 9223372036854775807, -9223372036854775808, -1, 0]
    first = written(tmp_path, b"".join(line(n) + b"\n" for n in unsigned))
    second = written(tmp_path, b"".join(line(n) + b"\n" for n in signed), "accepted.jsonl")
    held = [positions(read(path, Spelling.UNSIGNED)[1]) for path in (first, second)]
    assert held[0] == held[1]
    assert held[0][4] < held[0][0] < held[0][1] < held[0][2] < held[0][3]
    signs = SpellingSigns()
    events_read(first, signs)
    events_read(second, signs)
    with pytest.raises(BadInput, match="sign is ambiguous"):
        signs.decide()
    _, table = read(second)
    assert positions(table) == signed  # alone, a signed negative and zero are what they say
    alone = SpellingSigns()
    events_read(second, alone)
    assert alone.weaknesses()


def test_pairs_keep_both_halves_and_do_not_mix(tmp_path):
    _, table = read(written(tmp_path, line("7001:42") + b"\n" + line("7001:-1") + b"\n"))
    assert table["ordinal"].to_pylist() == [42, -1]
    assert table["position"][0].as_py() == 7001 - 2**63
    with pytest.raises(BadInput, match="mixed"):
        read(written(tmp_path, line("7001:42") + b"\n" + line(7) + b"\n"))
