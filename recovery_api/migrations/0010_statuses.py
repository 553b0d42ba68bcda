"""What was given, when the record was read, and which audits stand.

Audits of before: their reading is taken to be as old as their start, and of each pipeline the newest one stands. What
they call exactly once was not held to a proven ground: it is given from now on, and says so.
"""

import functools
import operator

from django.db import migrations, models
from django.db.models import Q

EARLIER = "the ground as it was judged before grounds had to be proven"
EXIT_CODES = {"exactly_once": 0, "exactly_once_given": 4, "owed": 1, "hazard": 1, "acknowledged": 1, "unknown": 3}
OUTCOMES = [
    "exactly_once",
    "exactly_once_given",
    "complete_with_acknowledged",
    "complete_hand_over_unverified",
    "incomplete",
    "incomplete_altered",
    "hazard",
    "fenced",
    "refused",
    "stopped",
    "unknown",
]


def audits_carry(apps, schema_editor):
    schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # what is deferred would keep the table from being altered
    audits = apps.get_model("recovery_api", "Audit").objects
    audits.filter(record_read_at__isnull=True).update(record_read_at=models.F("started_at"))
    audits.filter(status="exactly_once").update(status="exactly_once_given", exit_code=4, givens=[EARLIER])
    newest = audits.filter(pipeline=models.OuterRef("pipeline"), void_since__isnull=True).order_by("-record_read_at")
    audits.exclude(pk=models.Subquery(newest.values("pk")[:1])).update(is_standing=False)


class Migration(migrations.Migration):
    dependencies = [("recovery_api", "0009_workers")]

    operations = [
        migrations.RemoveConstraint("audit", "an_audit_status_is_known"),
        migrations.RemoveConstraint("audit", "an_audit_exit_code_is_known"),
        migrations.RemoveConstraint("audit", "exactly_once_has_nothing_lost_and_no_hazard"),
        migrations.RemoveConstraint("recovery", "a_recovery_outcome_is_known"),
        migrations.AddField("audit", "givens", models.JSONField(default=list)),
        migrations.AddField("audit", "record_read_at", models.DateTimeField(null=True)),
        migrations.AddField("audit", "is_standing", models.BooleanField(default=True)),
        migrations.AlterField(
            "audit",
            "status",
            models.CharField(
                max_length=20,
                choices=[
                    ("exactly_once", "Exactly Once"),
                    ("exactly_once_given", "Exactly Once Given"),
                    ("owed", "Owed"),
                    ("hazard", "Hazard"),
                    ("acknowledged", "Acknowledged"),
                    ("unknown", "Unknown"),
                ],
            ),
        ),
        migrations.AlterField(
            "recovery",
            "outcome",
            models.CharField(
                max_length=40,
                null=True,
                blank=True,
                choices=[(word, word.replace("_", " ").title()) for word in OUTCOMES],
            ),
        ),
        migrations.RunPython(audits_carry, migrations.RunPython.noop, elidable=False),
        migrations.AlterField("audit", "record_read_at", models.DateTimeField()),
        migrations.AddIndex(
            "audit",
            models.Index(
                fields=["pipeline"], condition=Q(is_standing=True, void_since__isnull=True), name="audits_that_stand"
            ),
        ),
        migrations.AddConstraint(
            "audit", models.CheckConstraint(condition=Q(status__in=list(EXIT_CODES)), name="an_audit_status_is_known")
        ),
        migrations.AddConstraint(
            "audit",
            models.CheckConstraint(condition=Q(exit_code__range=(0, 4)), name="an_audit_exit_code_is_known"),
        ),
        migrations.AddConstraint(
            "audit",
            models.CheckConstraint(
                condition=functools.reduce(
                    operator.or_, [Q(status=status, exit_code=code) for status, code in EXIT_CODES.items()]
                ),
                name="an_audit_exits_as_its_status_says",
            ),
        ),
        migrations.AddConstraint(
            "audit",
            models.CheckConstraint(
                condition=~Q(status__in=["exactly_once", "exactly_once_given"])
                | Q(lost_count=0, premature_count=0, duplicate_count=0),
                name="exactly_once_has_nothing_lost_and_no_hazard",
            ),
        ),
        migrations.AddConstraint(
            "audit",
            models.CheckConstraint(
                condition=(~Q(status="exactly_once") | Q(givens=[]))
                & (~Q(status="exactly_once_given") | ~Q(givens=[])),
                name="only_what_was_given_nothing_is_exactly_once",
            ),
        ),
        migrations.AddConstraint(
            "recovery",
            models.CheckConstraint(
                condition=Q(outcome__isnull=True) | Q(outcome__in=OUTCOMES), name="a_recovery_outcome_is_known"
            ),
        ),
    ]
