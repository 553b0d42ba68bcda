from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("recovery_api", "0008_token_last_used")]

    operations = [
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("name", models.CharField(max_length=200, primary_key=True, serialize=False)),
                ("queues", models.JSONField(default=list)),
                ("started_at", models.DateTimeField()),
                ("seen_at", models.DateTimeField()),
                ("stopping_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={"ordering": ["-seen_at"]},
        )
    ]
