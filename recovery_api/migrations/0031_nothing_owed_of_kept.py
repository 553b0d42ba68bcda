"""A further status and outcome: nothing owed of what is kept, what a source whose rows go comes to at best; and a further
step of the timeline: that somebody decided what no audit saw."""

import functools
import operator

from django.db import migrations, models
from django.db.models import Q

EXIT_CODES = {
    "exactly_once": 0,
    "exactly_once_given": 4,
    "nothing_owed_of_kept": 4,
    "complete_by_identity": 4,
    "owed": 1,
    "hazard": 1,
    "acknowledged": 1,
    "unknown": 3,
}
OUTCOMES = [
    "exactly_once",
    "exactly_once_given",
    "nothing_owed_of_kept",
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

STEPS = [
    "pipeline created",
    "end changed",
    "audit requested",
    "audit recorded",
    "plan requested",
    "plan recorded",
    "plan refused",
    "plan approved",
    "plan lapsed",
    "recovery requested",
    "generation allocated",
    "claim granted",
    "claim refused",
    "claim settled",
    "armed",
    "staged",
    "fired",
    "fire refused",
    "verified",
    "handed over",
    "step",
    "wanted",
    "recovery taken over",
    "recovery troubled",
    "recovery finished",
    "omission acknowledged",
    "omission withdrawn",
    "ledger decided",
    "sink restored",
    "sink cleared",
    "work failed",
    "end registered",
    "retired",
    "pipeline changed",
    "sink installed",
    "content read",
    "access denied",
    "token changed",
    "drill requested",
    "drill recorded",
]


def _titled(words):
    return [(word, word.replace("_", " ").title()) for word in words]


class Migration(migrations.Migration):
    dependencies = [("recovery_api", "0030_ledger")]

    operations = [
        migrations.RemoveConstraint("audit", "an_audit_status_is_known"),
        migrations.RemoveConstraint("audit", "an_audit_exits_as_its_status_says"),
        migrations.RemoveConstraint("audit", "exactly_once_has_nothing_lost_and_no_hazard"),
        migrations.AlterField("audit", "status", models.CharField(max_length=20, choices=_titled(EXIT_CODES))),
        migrations.AddConstraint(
            "audit", models.CheckConstraint(condition=Q(status__in=list(EXIT_CODES)), name="an_audit_status_is_known")
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
                condition=~Q(
                    status__in=["exactly_once", "exactly_once_given", "complete_by_identity", "nothing_owed_of_kept"]
                )
                | Q(lost_count=0, premature_count=0, duplicate_count=0),
                name="exactly_once_has_nothing_lost_and_no_hazard",
            ),
        ),
        migrations.RemoveConstraint("recovery", "a_recovery_outcome_is_known"),
        migrations.AlterField(
            "recovery",
            "outcome",
            models.CharField(max_length=40, choices=_titled(OUTCOMES), null=True, blank=True),
        ),
        migrations.AddConstraint(
            "recovery",
            models.CheckConstraint(
                condition=Q(outcome__isnull=True) | Q(outcome__in=OUTCOMES), name="a_recovery_outcome_is_known"
            ),
        ),
        migrations.RemoveConstraint("event", "an_event_kind_is_known"),
        migrations.AlterField("event", "kind", models.CharField(max_length=40, choices=_titled(STEPS))),
        migrations.AddConstraint(
            "event", models.CheckConstraint(condition=Q(kind__in=STEPS), name="an_event_kind_is_known")
        ),
    ]
