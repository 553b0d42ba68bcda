"""The timeline cannot be rewritten: a trigger refuses UPDATE, DELETE and TRUNCATE, whoever asks and in every
replication role. Whoever must (a retention rule agreed with an auditor) disables it in the open, as the table's owner.
"""

from django.db import migrations

FORWARD = """
CREATE FUNCTION recovery_api_event_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the timeline is append-only: % refused', TG_OP
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'events_are_append_only',
              HINT = 'Append a new event that corrects the earlier one.';
END
$$;
CREATE TRIGGER events_are_append_only BEFORE UPDATE OR DELETE ON recovery_api_event
    FOR EACH ROW EXECUTE FUNCTION recovery_api_event_is_append_only();
CREATE TRIGGER events_are_never_truncated BEFORE TRUNCATE ON recovery_api_event
    FOR EACH STATEMENT EXECUTE FUNCTION recovery_api_event_is_append_only();
ALTER TABLE recovery_api_event ENABLE ALWAYS TRIGGER events_are_append_only;
ALTER TABLE recovery_api_event ENABLE ALWAYS TRIGGER events_are_never_truncated;
"""

BACKWARD = """
DROP TRIGGER events_are_never_truncated ON recovery_api_event;
DROP TRIGGER events_are_append_only ON recovery_api_event;
DROP FUNCTION recovery_api_event_is_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("recovery_api", "0001_control_plane")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
