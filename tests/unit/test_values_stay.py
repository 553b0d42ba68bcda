"""S1: what nobody foresaw, and what Spark says, is kept by kind and place; the text, which may quote a row, is not."""

from __future__ import annotations

import pytest
from pyspark.errors.exceptions.base import PySparkException

from recovery_api.domain.errors import AccessDenied, EngineUnavailable
from workers.runners import defect_says
from workers.spark.session import engine_errors_mapped

SECRET = "4111-1111"


def test_s1_an_error_that_was_not_foreseen_is_kept_without_its_text() -> None:
    try:
        int(SECRET)
    except ValueError as error:
        said = defect_says(error)
    assert "ValueError" in said and "tests/unit/test_values_stay.py:" in said and SECRET not in said


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        (f'<_InactiveRpcError: StatusCode.UNAUTHENTICATED details = "{SECRET}"', AccessDenied, "token"),
        (f"Python worker exited unexpectedly (crashed): row {SECRET}", EngineUnavailable, "Python worker exited"),
        (f"[RETRIES_EXCEEDED] {SECRET}", EngineUnavailable, "RETRIES_EXCEEDED"),
    ],
)
def test_s1_sparks_words_choose_the_sentence_and_stay_behind(text: str, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says) as raised, engine_errors_mapped():
        raise PySparkException(message=text)
    assert SECRET not in str(raised.value)
