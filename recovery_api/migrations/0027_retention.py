"""Audits and plans say since when their parts are gone, and the timeline lets old events go.

The timeline still refuses UPDATE and TRUNCATE, whoever asks, and DELETE of any event that is younger than 30 days by the
server's own clock. An older one goes where the transaction names the bound below which it deletes
(`fencepost.retire_events_before`): the product's retention does, and appends an event that says what went.
"""

from django.db import migrations, models

FORWARD = """
CREATE OR REPLACE FUNCTION recovery_api_event_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    bound text := pg_catalog.current_setting('fencepost.retire_events_before', true);
BEGIN
    IF TG_OP = 'DELETE' AND TG_LEVEL = 'ROW' THEN
        IF bound <> '' THEN
            IF OLD.at < bound::timestamptz AND OLD.at < pg_catalog.clock_timestamp() - interval '30 days' THEN
                RETURN OLD;
            END IF;
        END IF;
    END IF;
    RAISE EXCEPTION 'the timeline is append-only: % refused', TG_OP
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'events_are_append_only',
              HINT = 'Append a new event that corrects the earlier one.';
END
$$;
"""

BACKWARD = """
CREATE OR REPLACE FUNCTION recovery_api_event_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the timeline is append-only: % refused', TG_OP
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'events_are_append_only',
              HINT = 'Append a new event that corrects the earlier one.';
END
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("recovery_api", "0026_history")]

    operations = [
        migrations.AddField("audit", "evidence_gone_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("plan", "evidence_gone_at", models.DateTimeField(blank=True, null=True)),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
