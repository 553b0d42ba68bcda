"""S1: a sink's constraint, or its owner's own effect, refuses by quoting a row; the quotation stays at the sink."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from recovery_api.domain.errors import FencepostError
from tests.contract.sink_engines import digest_make, event_make, rows_make
from tests.integration.kit.kit_world import KitWorld

SECRET = "4111-1111-1111-1111"
TARGET = """
    DROP TABLE IF EXISTS public.cards CASCADE;
    CREATE TABLE public.cards (number text PRIMARY KEY, card text UNIQUE CHECK (card !~ 'wrong'), cents integer)"""
EFFECT = """
    CREATE OR REPLACE FUNCTION public.quoting(
        lane text, "position" bigint, ordinal bigint, op text, key text, content jsonb) RETURNS void
    LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no: %', content USING DETAIL = content::text; END $$"""
MAPPED = {
    "prepare": TARGET,
    "target": "cards",
    "target_key": "number",
    "target_columns": {"card": "card", "cents": "cents"},
}


def said_of(world: KitWorld, contents: list[str]) -> str:
    rows = rows_make([event_make(at + 1, key=str(at), content=content) for at, content in enumerate(contents)])
    generation = world.claim()
    arm = int(world.sink.arm(generation, digest_make(rows), {}).data["arm"])
    world.sink.stage(generation, arm, iter([rows]))
    with pytest.raises(FencepostError) as raised:
        world.sink.fire(generation, arm)
    return repr(raised.value.as_row())


@pytest.mark.parametrize(
    ("contents", "sqlstate"),
    [
        ([f'{{"card": "wrong {SECRET}"}}'], "23514"),
        ([f'{{"card": "{SECRET}"}}', f'{{"card": "{SECRET}"}}'], "23505"),
        ([f'{{"card": "a", "cents": "{SECRET}"}}'], "22P02"),
    ],
)
def test_s1_a_violated_constraint_is_named_by_its_state_alone(
    world_make: Callable[..., KitWorld], contents: list[str], sqlstate: str
) -> None:
    said = said_of(world_make(**MAPPED), contents)
    assert sqlstate in said and "4111" not in said


def test_s1_an_effects_own_words_stay_at_the_sink(world_make: Callable[..., KitWorld]) -> None:
    said = said_of(world_make(prepare=EFFECT, effect_function="quoting", effect_order="order-free"), [f'"{SECRET}"'])
    assert "P0001" in said and "4111" not in said
