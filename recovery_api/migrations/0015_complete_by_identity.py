"""One more status of an audit: complete by identity, the best that a record with only message ids can come to."""

import functools
import operator

from django.db import migrations, models
from django.db.models import Q

EXIT_CODES = {
    "exactly_once": 0,
    "exactly_once_given": 4,
    "complete_by_identity": 4,
    "owed": 1,
    "hazard": 1,
    "acknowledged": 1,
    "unknown": 3,
}


class Migration(migrations.Migration):
    dependencies = [("recovery_api", "0014_incarnations")]

    operations = [
        migrations.RemoveConstraint("audit", "an_audit_status_is_known"),
        migrations.RemoveConstraint("audit", "an_audit_exits_as_its_status_says"),
        migrations.RemoveConstraint("audit", "exactly_once_has_nothing_lost_and_no_hazard"),
        migrations.AlterField(
            "audit",
            "status",
            models.CharField(
                max_length=20, choices=[(word, word.replace("_", " ").title()) for word in EXIT_CODES]
            ),
        ),
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
                condition=~Q(status__in=["exactly_once", "exactly_once_given", "complete_by_identity"])
                | Q(lost_count=0, premature_count=0, duplicate_count=0),
                name="exactly_once_has_nothing_lost_and_no_hazard",
            ),
        ),
    ]
