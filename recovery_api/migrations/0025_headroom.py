from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('recovery_api', '0024_archive_parts'),
    ]

    operations = [
        migrations.AddField(
            model_name='audit',
            name='evidence_until',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='audit',
            name='evidence_says',
            field=models.TextField(blank=True, default=''),
        ),
        migrations.AddField(
            model_name='audit',
            name='ends_seen',
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name='recovery',
            name='certificate_evidence_until',
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
