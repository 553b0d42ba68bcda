import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('recovery_api', '0018_no_audit_continues_another'),
    ]

    operations = [
        migrations.CreateModel(
            name='Schedule',
            fields=[
                ('pipeline', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='schedule', serialize=False, to='recovery_api.pipeline')),
                ('next_due_at', models.DateTimeField(blank=True, null=True)),
                ('next_full_at', models.DateTimeField()),
                ('due_at', models.DateTimeField(blank=True, null=True)),
                ('last_due_at', models.DateTimeField(blank=True, null=True)),
                ('pins', models.JSONField(default=list)),
                ('waiting', models.JSONField(default=dict)),
                ('waiting_since', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['next_due_at'], name='schedules_by_due_time')],
                'constraints': [models.CheckConstraint(condition=models.Q(('due_at__isnull', True), ('last_due_at__gte', models.F('due_at')), _connector='OR'), name='what_is_unanswered_was_asked_for')],
            },
        ),
        migrations.AddField(
            model_name='audit',
            name='is_scheduled',
            field=models.BooleanField(default=False),
        ),
    ]
