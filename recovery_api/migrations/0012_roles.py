"""The roles as groups, so that people can be put into them as soon as the tables are there."""

from django.db import migrations

ROLES = ("viewer", "operator", "approver", "admin")


def roles_make(apps, schema_editor):
    groups = apps.get_model("auth", "Group").objects.using(schema_editor.connection.alias)
    for name in ROLES:
        groups.get_or_create(name=name)


class Migration(migrations.Migration):
    dependencies = [
        ("recovery_api", "0011_refusal_counts"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    # Backwards nothing goes: people may be in these groups, and an installation may have had them before.
    operations = [migrations.RunPython(roles_make, migrations.RunPython.noop)]
