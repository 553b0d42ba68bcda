"""Settled items go by age and leave sums; image audits say since when their parts are gone; a file of the archive says where
it lies, unless that is the folder that is set for evidence.
"""

import django.db.models.deletion
from django.db import migrations, models

WORDS = ["lost", "altered", "premature", "duplicate"]
SETTLED_BY = ["accepted", "committed", "trimmed", "replaced"]


class Migration(migrations.Migration):
    dependencies = [("recovery_api", "0036_looking")]

    operations = [
        migrations.AddField("imageaudit", "evidence_gone_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("archivepart", "place", models.TextField(blank=True, default="")),
        migrations.CreateModel(
            name="SettledItems",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("lane", models.TextField()),
                ("word", models.CharField(choices=[(word, word) for word in WORDS], max_length=20)),
                ("settled_by", models.CharField(choices=[(word, word) for word in SETTLED_BY], max_length=20)),
                ("count", models.BigIntegerField(default=0)),
                ("digests", models.TextField(default="0:0:0:0")),
                ("first_seen_at", models.DateTimeField()),
                ("last_settled_at", models.DateTimeField()),
                (
                    "pipeline",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="settled_items",
                        to="recovery_api.pipeline",
                    ),
                ),
            ],
            options={
                "ordering": ["pipeline", "lane", "word", "settled_by"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("pipeline", "lane", "word", "settled_by"), name="settled_items_are_added_up_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("word__in", WORDS), ("settled_by__in", SETTLED_BY)),
                        name="settled_items_have_known_words",
                    ),
                ],
            },
        ),
    ]
