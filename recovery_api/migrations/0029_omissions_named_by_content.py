from django.db import migrations, models

WORDS = [
    ("owed", "Owed"),
    ("owed by content", "By Content"),
    ("already acknowledged", "Already"),
    ("accepted", "Accepted"),
    ("undecided", "Undecided"),
    ("never committed", "Never Committed"),
    ("several events", "Several"),
    ("several alike", "Alike"),
    ("no such content", "Unmatched"),
    ("other event id", "Other Id"),
    ("above f", "Above"),
    ("out of scope", "Out Of Scope"),
]


class Migration(migrations.Migration):
    """A dead letter may name its event by key and content alone; what was acknowledged so says it."""

    dependencies = [("recovery_api", "0028_image_audits")]

    operations = [
        migrations.AddField(
            model_name="acknowledgedomission", name="is_by_content", field=models.BooleanField(default=False)
        ),
        migrations.AddField(
            model_name="previewedomission", name="payload", field=models.TextField(blank=True, default="")
        ),
        migrations.AlterField(
            model_name="previewedomission",
            name="word",
            field=models.CharField(blank=True, choices=WORDS, default="", max_length=30),
        ),
    ]
