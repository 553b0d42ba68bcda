"""What an image audit looks like, for the OpenAPI document. Rows are made by recovery_api.image_rows."""

from __future__ import annotations

from rest_framework import serializers

from recovery_api.domain.images import ImageWord
from recovery_api.domain.outcomes import ImageStatus
from recovery_api.domain.words import words
from recovery_api.serializers.members import Moment, WideField, maybe, texts

IMAGE_WORDS = words(ImageWord)


class ImageWordShape(serializers.Serializer):
    word = serializers.ChoiceField(IMAGE_WORDS)
    keys = WideField()
    is_unknown = serializers.BooleanField(help_text="It is no difference, and no equality.")
    means = serializers.CharField()
    remedy = serializers.CharField()


class ImageNamedShape(serializers.Serializer):
    number = WideField(help_text="Its place here, by which its values are asked for.")
    word = serializers.ChoiceField(IMAGE_WORDS)
    key = serializers.CharField(help_text="As the target spells it, else as the event does; cut at 200 characters.")
    coordinate = maybe(serializers.CharField, help_text="Of the key's latest event; null: nothing tells of one.")


class ImageEvidenceShape(serializers.Serializer):
    uri = serializers.CharField(help_text="Where every finding lies, as Parquet.")
    gone_at = maybe(Moment, help_text="Since when its parts are gone, by age; figures stay.")


class ImageShape(serializers.Serializer):
    """A copy of state beside the history. It says nothing of what was delivered."""

    image = serializers.UUIDField()
    pipeline = serializers.CharField()
    status = serializers.ChoiceField(words(ImageStatus))
    says = serializers.CharField()
    exit_code = serializers.IntegerField(help_text="As of the command.")
    is_scheduled = serializers.BooleanField()
    target = maybe(serializers.CharField, help_text="The table that was read; null: none was.")
    frontier = maybe(serializers.CharField, help_text="null: nothing was compared.")
    keys = WideField(help_text="Every key that either side tells of.")
    rows = WideField(help_text="How many keys the target holds.")
    words = ImageWordShape(many=True)
    sample = ImageNamedShape(many=True, help_text="A few keys of each word.")
    given = texts("What a mismatch-free rests on besides what was read.")
    weaknesses = texts()
    gap = maybe(serializers.CharField, help_text="Why the history was not whole; null: it was.")
    keeps_base = serializers.BooleanField(help_text="What the history gives each key is kept with the evidence.")
    based_on = maybe(serializers.UUIDField, help_text="The image audit whose base was read.")
    source_snapshot = serializers.CharField()
    sink_snapshot = serializers.CharField()
    evidence = ImageEvidenceShape()
    started_at = Moment()
    finished_at = Moment()
