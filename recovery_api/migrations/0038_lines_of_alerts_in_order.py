"""A line of an alert's history says after which event it was written, so that a timeline has events and alerts in one order."""

from django.db import migrations, models

PLACE = """
WITH written AS (
    SELECT at, 0 AS sort, id AS event, NULL::bigint AS line FROM recovery_api_event
    UNION ALL
    SELECT at, 1, NULL, id FROM recovery_api_alertline
),
placed AS (
    SELECT line, max(event) OVER (ORDER BY at, sort ROWS UNBOUNDED PRECEDING) AS after_event FROM written
)
UPDATE recovery_api_alertline AS kept
   SET after_event = placed.after_event
  FROM placed
 WHERE placed.line = kept.id AND placed.after_event IS NOT NULL
"""
"""Lines that were written before take the place that their time gives them."""


class Migration(migrations.Migration):
    dependencies = [("recovery_api", "0037_kept_by_age_and_archive_places")]

    operations = [
        migrations.AddField("alertline", "after_event", models.BigIntegerField(default=0)),
        migrations.AddIndex("alertline", models.Index(fields=["after_event", "id"], name="lines_of_alerts_in_order")),
        migrations.RunSQL(PLACE, migrations.RunSQL.noop),
    ]
