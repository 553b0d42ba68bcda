import uuid

import django.db.models.deletion
from django.db import migrations, models

ACTIONS = [
    ("connection_test", "Connection Test"),
    ("audit", "Audit"),
    ("plan", "Plan"),
    ("recover", "Recover"),
    ("settle", "Settle"),
    ("sink_read", "Sink Read"),
    ("sink_install", "Sink Install"),
    ("event_read", "Event Read"),
    ("omission_look_up", "Omission Look Up"),
    ("drill", "Drill"),
]
WORDS = [
    ("owed", "Owed"),
    ("already acknowledged", "Already"),
    ("accepted", "Accepted"),
    ("undecided", "Undecided"),
    ("never committed", "Never Committed"),
    ("several events", "Several"),
    ("other event id", "Other Id"),
    ("above f", "Above"),
    ("out of scope", "Out Of Scope"),
]


class Migration(migrations.Migration):
    """An omission has a reference, an end and the act it was part of; more than one is previewed before it is confirmed."""

    dependencies = [("recovery_api", "0021_nothing_owed_of_kept")]

    operations = [
        migrations.RemoveConstraint(model_name="intent", name="an_intent_action_is_known"),
        migrations.AlterField(
            model_name="intent", name="action", field=models.CharField(choices=ACTIONS, max_length=30)
        ),
        migrations.AddConstraint(
            model_name="intent",
            constraint=models.CheckConstraint(
                condition=models.Q(("action__in", [word for word, _ in ACTIONS])), name="an_intent_action_is_known"
            ),
        ),
        migrations.AddField(
            model_name="acknowledgedomission", name="accepted_seen_at", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddField(
            model_name="acknowledgedomission", name="reference", field=models.TextField(blank=True, default="")
        ),
        migrations.AddField(
            model_name="acknowledgedomission", name="until", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddField(model_name="acknowledgedomission", name="act", field=models.UUIDField(null=True)),
        # Each that is there was an act of its own.
        migrations.RunSQL(
            "UPDATE recovery_api_acknowledgedomission SET act = gen_random_uuid()", migrations.RunSQL.noop
        ),
        migrations.AlterField(
            model_name="acknowledgedomission", name="act", field=models.UUIDField(default=uuid.uuid4)
        ),
        migrations.AddIndex(
            model_name="acknowledgedomission", index=models.Index(fields=["act"], name="omissions_of_an_act")
        ),
        migrations.AddIndex(
            model_name="acknowledgedomission",
            index=models.Index(
                condition=models.Q(("until__isnull", False), ("withdrawn_at__isnull", True)),
                fields=["until"],
                name="omissions_that_end",
            ),
        ),
        migrations.AddConstraint(
            model_name="acknowledgedomission",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("until__isnull", True), ("until__gt", models.F("acknowledged_at")), _connector="OR"
                ),
                name="an_omission_ends_after_it_began",
            ),
        ),
        migrations.CreateModel(
            name="OmissionPreview",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("way", models.CharField(choices=[("filter", "Filter"), ("export", "Export")], max_length=20)),
                ("asked", models.JSONField(default=dict)),
                ("counts", models.JSONField(blank=True, null=True)),
                ("created_by", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField()),
                ("confirmed_by", models.CharField(blank=True, default="", max_length=200)),
                ("confirmed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "audit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="recovery_api.audit"
                    ),
                ),
                (
                    "pipeline",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="omission_previews",
                        to="recovery_api.pipeline",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["created_at"], name="omission_previews_by_age")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("way__in", ["filter", "export"])), name="a_way_to_acknowledge_is_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("confirmed_at__isnull", True), ("counts__isnull", False), _connector="OR"
                        ),
                        name="only_what_was_shown_is_confirmed",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PreviewedOmission",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("line", models.BigIntegerField(null=True)),
                ("lane", models.TextField()),
                ("position", models.BigIntegerField(null=True)),
                ("ordinal", models.BigIntegerField(null=True)),
                ("event_id", models.TextField(blank=True, default="")),
                ("word", models.CharField(blank=True, choices=WORDS, default="", max_length=30)),
                (
                    "preview",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="places",
                        to="recovery_api.omissionpreview",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["preview", "lane", "position", "ordinal"], name="previewed_omissions_by_place"
                    )
                ],
            },
        ),
    ]
