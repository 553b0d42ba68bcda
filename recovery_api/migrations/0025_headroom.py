import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('recovery_api', '0024_archive_parts'),
    ]

    operations = [
        migrations.CreateModel(
            name='HeadroomFigure',
            fields=[
                ('pipeline', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='headroom_figure', serialize=False, to='recovery_api.pipeline')),
                ('standing', models.CharField(max_length=10)),
                ('decide_by', models.DateTimeField(blank=True, null=True)),
                ('event_id', models.BigIntegerField()),
                ('worked_out_at', models.DateTimeField()),
                ('holds_until', models.DateTimeField()),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('standing__in', ['gone', 'low', 'unknown', 'ok'])), name='a_headroom_is_a_known_word')],
            },
        ),
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
