"""The ledger: each lane as it was last seen, and every obligation or acceptance that was not settled."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

ITEM_WORDS = ["lost", "altered", "premature", "duplicate"]
SETTLED_WORDS = ["accepted", "committed", "trimmed", "replaced"]


def _key(to, **more):
    return models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to=to, **more)


class Migration(migrations.Migration):
    dependencies = [("recovery_api", "0016_recovery_states_of_appending")]

    operations = [
        migrations.CreateModel(
            name="LedgerLane",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("pipeline", _key("recovery_api.pipeline", related_name="ledger_lanes")),
                ("lane", models.TextField()),
                ("epoch", models.CharField(max_length=64)),
                ("audit", _key("recovery_api.audit", related_name="+")),
                ("read_at", models.DateTimeField()),
                ("frontier", models.JSONField(blank=True, null=True)),
                ("lowest", models.JSONField(blank=True, null=True)),
                ("earliest", models.JSONField(blank=True, null=True)),
                ("head", models.JSONField(blank=True, null=True)),
                ("admitted_below", models.BigIntegerField(blank=True, null=True)),
                ("prefix", models.JSONField(default=dict)),
                ("unseen_above", models.JSONField(blank=True, null=True)),
                ("unseen_below", models.JSONField(blank=True, null=True)),
                ("evidence", models.TextField(blank=True, default="")),
                ("unjustifiable_count", models.BigIntegerField(default=0)),
                ("is_whole", models.BooleanField(default=True)),
                ("givens", models.JSONField(default=list)),
                ("decided_below", models.JSONField(blank=True, null=True)),
                ("decided_by", models.CharField(blank=True, default="", max_length=200)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                ("decided_because", models.TextField(blank=True, default="")),
                ("void_since", models.DateTimeField(blank=True, null=True)),
                ("void_says", models.TextField(blank=True, default="")),
            ],
            options={"ordering": ["pipeline", "lane", "-read_at"]},
        ),
        migrations.AddConstraint(
            "ledgerlane",
            models.UniqueConstraint(
                fields=["pipeline", "lane", "epoch"],
                condition=Q(void_since__isnull=True),
                name="a_lane_has_one_ledger_an_epoch",
            ),
        ),
        migrations.AddConstraint(
            "ledgerlane",
            models.CheckConstraint(
                condition=Q(decided_below__isnull=True, decided_at__isnull=True)
                | (Q(decided_below__isnull=False, decided_at__isnull=False) & ~Q(decided_by="") & ~Q(decided_because="")),
                name="a_decision_about_a_ledger_has_a_person_a_time_and_a_reason",
            ),
        ),
        migrations.CreateModel(
            name="LedgerItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("pipeline", _key("recovery_api.pipeline", related_name="ledger_items")),
                ("lane", models.TextField()),
                ("position", models.BigIntegerField()),
                ("ordinal", models.BigIntegerField(default=0)),
                ("word", models.CharField(choices=[(word, word) for word in ITEM_WORDS], max_length=20)),
                ("cause", models.CharField(blank=True, default="", max_length=40)),
                ("digest", models.BinaryField(default=b"")),
                ("other_digest", models.BinaryField(blank=True, null=True)),
                ("entry", models.BigIntegerField(blank=True, null=True)),
                ("copies", models.BigIntegerField(blank=True, null=True)),
                ("event_id", models.TextField(blank=True, null=True)),
                ("key", models.TextField(blank=True, null=True)),
                ("committed_at", models.DateTimeField(blank=True, null=True)),
                ("epoch", models.CharField(max_length=64)),
                ("is_acknowledged", models.BooleanField(default=False)),
                ("is_content_gone", models.BooleanField(default=False)),
                ("first_audit", _key("recovery_api.audit", related_name="+")),
                ("first_seen_at", models.DateTimeField()),
                ("last_audit", _key("recovery_api.audit", related_name="+")),
                ("last_seen_at", models.DateTimeField()),
                (
                    "settled_by",
                    models.CharField(
                        blank=True, choices=[(word, word) for word in SETTLED_WORDS], default="", max_length=20
                    ),
                ),
                ("settled_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={"ordering": ["pipeline", "lane", "position", "ordinal"]},
        ),
        migrations.AddConstraint(
            "ledgeritem",
            models.UniqueConstraint(
                fields=["pipeline", "lane", "position", "ordinal", "word", "digest"], name="an_item_is_remembered_once"
            ),
        ),
        migrations.AddConstraint(
            "ledgeritem",
            models.CheckConstraint(condition=Q(word__in=ITEM_WORDS), name="a_ledger_item_word_is_known"),
        ),
        migrations.AddConstraint(
            "ledgeritem",
            models.CheckConstraint(
                condition=Q(settled_by="", settled_at__isnull=True)
                | Q(settled_by__in=SETTLED_WORDS, settled_at__isnull=False),
                name="what_is_settled_has_a_word_and_a_time",
            ),
        ),
        migrations.AddIndex(
            "ledgeritem",
            models.Index(
                fields=["pipeline", "lane", "position", "ordinal"],
                condition=Q(settled_at__isnull=True),
                name="ledger_items_that_are_open",
            ),
        ),
        migrations.AddIndex(
            "ledgeritem",
            models.Index(
                fields=["pipeline", "-settled_at"], condition=Q(settled_at__isnull=False), name="ledger_items_settled"
            ),
        ),
    ]
