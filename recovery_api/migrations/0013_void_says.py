"""Why an audit or a certificate is void: a restored sink, or a ground that a late row refuted."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

RESTORED = "The sink was restored to an earlier state after it; what it found says nothing about the sink now."


def told(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    """Until now there was one reason."""
    apps.get_model("recovery_api", "Audit").objects.filter(void_since__isnull=False).update(void_says=RESTORED)
    recoveries = apps.get_model("recovery_api", "Recovery").objects.filter(certificate_void_since__isnull=False)
    recoveries.update(certificate_void_says=RESTORED)


class Migration(migrations.Migration):
    dependencies = [("recovery_api", "0012_roles")]

    operations = [
        migrations.AddField("audit", "void_says", models.TextField(blank=True, default="")),
        migrations.AddField("recovery", "certificate_void_says", models.TextField(blank=True, default="")),
        migrations.RunPython(told, migrations.RunPython.noop),
    ]
