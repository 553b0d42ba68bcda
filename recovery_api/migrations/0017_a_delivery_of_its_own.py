"""A pipeline may fire into another end than the one its record is read from. Every pipeline so far is one end."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("recovery_api", "0016_recovery_states_of_appending"),
    ]

    operations = [
        migrations.AddField(
            model_name="pipeline",
            name="delivery",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="pipelines_fed",
                to="recovery_api.sink",
            ),
        ),
        migrations.AddConstraint(
            model_name="pipeline",
            constraint=models.UniqueConstraint(
                condition=models.Q(("retired_at__isnull", True)),
                fields=("delivery",),
                name="a_delivery_serves_one_pipeline",
            ),
        ),
        migrations.AddConstraint(
            model_name="pipeline",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("delivery__isnull", True), models.Q(("delivery", models.F("sink")), _negated=True), _connector="OR"
                ),
                name="a_delivery_of_its_own_is_not_the_record",
            ),
        ),
    ]
