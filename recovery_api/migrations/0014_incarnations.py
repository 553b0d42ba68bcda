"""What a sink without a counter said is remembered, too: when, and the identity of its incarnation."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models import Q

NAME = "what_a_sink_said_is_remembered_whole"
NOTHING = Q(said_at__isnull=True, said_identity__isnull=True, said_counter__isnull=True, said_fence__isnull=True)
BOTH = Q(said_counter__isnull=False, said_fence__isnull=False)
NEITHER = Q(said_counter__isnull=True, said_fence__isnull=True)


class Migration(migrations.Migration):
    dependencies = [("recovery_api", "0013_void_says")]

    operations = [
        migrations.RemoveConstraint("sink", NAME),
        migrations.AddConstraint(
            "sink",
            models.CheckConstraint(
                condition=NOTHING | Q(said_at__isnull=False, said_identity__isnull=False) & (BOTH | NEITHER), name=NAME
            ),
        ),
    ]
