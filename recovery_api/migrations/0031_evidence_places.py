import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """The places of evidence: what exists of each is a manifest, committed with what rests on it."""

    dependencies = [
        ('recovery_api', '0030_archive_parts_joined'),
    ]

    operations = [
        migrations.CreateModel(
            name='EvidencePlace',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uri', models.TextField(unique=True)),
                ('begun_at', models.DateTimeField()),
                ('kept_at', models.DateTimeField(blank=True, null=True)),
                ('manifest', models.JSONField(default=list)),
                ('released_at', models.DateTimeField(blank=True, null=True)),
                ('swept_at', models.DateTimeField(blank=True, null=True)),
                ('recovery', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='places', to='recovery_api.recovery')),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(condition=models.Q(('released_at__isnull', False)), fields=['released_at'], name='evidence_to_take_away'), models.Index(condition=models.Q(('kept_at__isnull', True), ('released_at__isnull', True)), fields=['begun_at'], name='evidence_nothing_rests_on'), models.Index(condition=models.Q(('kept_at__isnull', False), ('released_at__isnull', True), ('swept_at__isnull', True)), fields=['kept_at'], name='evidence_to_look_through')],
                'constraints': [models.CheckConstraint(condition=models.Q(('kept_at__isnull', False), ('manifest', []), _connector='OR'), name='a_manifest_is_kept')],
            },
        ),
    ]
