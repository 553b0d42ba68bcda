
import django.db.models.deletion
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('recovery_api', '0031_evidence_places'),
    ]

    operations = [
        migrations.CreateModel(
            name='Alert',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('cause', models.CharField(choices=[('owed', 'Owed'), ('hazard', 'Hazard'), ('unknown', 'Unknown'), ('overdue', 'Overdue'), ('headroom_low', 'Headroom Low'), ('headroom_gone', 'Headroom Gone'), ('recovery_unsettled', 'Recovery Unsettled'), ('recovery_stuck', 'Recovery Stuck'), ('recovery_ended_badly', 'Recovery Ended Badly'), ('hand_over', 'Hand Over'), ('relay_stalled', 'Relay Stalled'), ('source_growth', 'Source Growth'), ('ground_lost', 'Ground Lost'), ('generation_backwards', 'Generation Backwards'), ('capability_weaker', 'Capability Weaker'), ('kit_outdated', 'Kit Outdated'), ('drill_failed', 'Drill Failed'), ('drill_old', 'Drill Old'), ('no_worker', 'No Worker'), ('no_engine', 'No Engine'), ('no_broker', 'No Broker')], max_length=40)),
                ('subject', models.CharField(max_length=40)),
                ('end', models.CharField(blank=True, default='', max_length=300)),
                ('severity', models.CharField(choices=[('critical', 'Critical'), ('error', 'Error'), ('warning', 'Warning')], max_length=10)),
                ('number', models.BigIntegerField(default=0)),
                ('says', models.TextField(blank=True, default='')),
                ('evidence', models.CharField(blank=True, default='', max_length=200)),
                ('since', models.DateTimeField()),
                ('opened_at', models.DateTimeField()),
                ('seen_at', models.DateTimeField()),
                ('observed_at', models.DateTimeField()),
                ('level_severity', models.CharField(choices=[('critical', 'Critical'), ('error', 'Error'), ('warning', 'Warning')], max_length=10)),
                ('level_number', models.BigIntegerField(default=0)),
                ('clear_at', models.DateTimeField(blank=True, null=True)),
                ('resolved_at', models.DateTimeField(blank=True, null=True)),
                ('reopened_count', models.IntegerField(default=0)),
                ('first_opened_at', models.DateTimeField()),
                ('told', models.CharField(choices=[('nothing', 'Nothing'), ('firing', 'Firing'), ('resolved', 'Resolved')], default='nothing', max_length=10)),
                ('told_since', models.DateTimeField()),
                ('acknowledged_at', models.DateTimeField(blank=True, null=True)),
                ('acknowledged_until', models.DateTimeField(blank=True, null=True)),
                ('acknowledged_by', models.CharField(blank=True, default='', max_length=200)),
                ('acknowledged_note', models.TextField(blank=True, default='')),
                ('muted_until', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['-opened_at'],
            },
        ),
        migrations.CreateModel(
            name='AlertGroup',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('cause', models.CharField(choices=[('owed', 'Owed'), ('hazard', 'Hazard'), ('unknown', 'Unknown'), ('overdue', 'Overdue'), ('headroom_low', 'Headroom Low'), ('headroom_gone', 'Headroom Gone'), ('recovery_unsettled', 'Recovery Unsettled'), ('recovery_stuck', 'Recovery Stuck'), ('recovery_ended_badly', 'Recovery Ended Badly'), ('hand_over', 'Hand Over'), ('relay_stalled', 'Relay Stalled'), ('source_growth', 'Source Growth'), ('ground_lost', 'Ground Lost'), ('generation_backwards', 'Generation Backwards'), ('capability_weaker', 'Capability Weaker'), ('kit_outdated', 'Kit Outdated'), ('drill_failed', 'Drill Failed'), ('drill_old', 'Drill Old'), ('no_worker', 'No Worker'), ('no_engine', 'No Engine'), ('no_broker', 'No Broker')], max_length=40)),
                ('end', models.CharField(max_length=300)),
                ('way', models.CharField(max_length=500)),
                ('severity', models.CharField(choices=[('critical', 'Critical'), ('error', 'Error'), ('warning', 'Warning')], max_length=10)),
                ('round', models.IntegerField(default=1)),
                ('opened_at', models.DateTimeField()),
                ('told_at', models.DateTimeField(blank=True, null=True)),
                ('told_count', models.IntegerField(default=0)),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['-opened_at'],
            },
        ),
        migrations.CreateModel(
            name='AlertLine',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('change', models.CharField(max_length=20)),
                ('actor', models.CharField(max_length=200)),
                ('says', models.TextField(blank=True, default='')),
                ('evidence', models.CharField(blank=True, default='', max_length=200)),
            ],
            options={
                'ordering': ['at', 'id'],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('message_id', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ('number', models.BigAutoField(primary_key=True, serialize=False)),
                ('key', models.CharField(max_length=100)),
                ('kind', models.CharField(choices=[('trigger', 'Trigger'), ('update', 'Update'), ('acknowledge', 'Acknowledge'), ('resolve', 'Resolve'), ('test', 'Test')], max_length=20)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('sending', 'Sending'), ('sent', 'Sent'), ('superseded', 'Superseded'), ('refused', 'Refused'), ('given_up', 'Given Up')], default='waiting', max_length=20)),
                ('message', models.JSONField()),
                ('created_at', models.DateTimeField()),
                ('created_by', models.CharField(max_length=200)),
                ('due_since', models.DateTimeField()),
                ('due_at', models.DateTimeField(blank=True, null=True)),
                ('attempts', models.IntegerField(default=0)),
                ('taken_by', models.CharField(blank=True, default='', max_length=200)),
                ('taken_until', models.DateTimeField(blank=True, null=True)),
                ('sent_at', models.DateTimeField(blank=True, null=True)),
                ('is_late', models.BooleanField(default=False)),
                ('answers', models.JSONField(default=list)),
                ('spare_at', models.DateTimeField(blank=True, null=True)),
                ('superseded_by', models.BigIntegerField(blank=True, null=True)),
            ],
            options={
                'ordering': ['-number'],
            },
        ),
        migrations.CreateModel(
            name='Destination',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('shape', models.CharField(choices=[('pagerduty', 'Pagerduty'), ('alertmanager', 'Alertmanager'), ('slack', 'Slack'), ('json', 'Json'), ('email', 'Email')], max_length=20)),
                ('address', models.TextField(blank=True, default='')),
                ('secret', models.TextField(blank=True, default='')),
                ('disabled_at', models.DateTimeField(blank=True, null=True)),
                ('disabled_says', models.TextField(blank=True, default='')),
                ('created_at', models.DateTimeField()),
                ('created_by', models.CharField(max_length=200)),
                ('retired_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='Mute',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('by', models.CharField(choices=[('pipeline', 'Pipeline'), ('source', 'Source'), ('sink', 'Sink'), ('label', 'Label')], max_length=10)),
                ('value', models.CharField(max_length=300)),
                ('cause', models.CharField(blank=True, default='', max_length=40)),
                ('note', models.TextField()),
                ('until', models.DateTimeField()),
                ('created_at', models.DateTimeField()),
                ('created_by', models.CharField(max_length=200)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('ended_by', models.CharField(blank=True, default='', max_length=200)),
            ],
            options={
                'ordering': ['until'],
            },
        ),
        migrations.CreateModel(
            name='Route',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('position', models.IntegerField()),
                ('least', models.CharField(choices=[('critical', 'Critical'), ('error', 'Error'), ('warning', 'Warning')], default='warning', max_length=10)),
                ('causes', models.JSONField(default=list)),
                ('labels', models.JSONField(default=dict)),
                ('goes_on', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField()),
                ('created_by', models.CharField(max_length=200)),
            ],
            options={
                'ordering': ['position', 'id'],
            },
        ),
        migrations.RemoveConstraint(
            model_name='event',
            name='an_event_kind_is_known',
        ),
        migrations.AlterField(
            model_name='event',
            name='kind',
            field=models.CharField(choices=[('pipeline created', 'Pipeline Created'), ('end changed', 'End Changed'), ('audit requested', 'Audit Requested'), ('audit recorded', 'Audit Recorded'), ('image requested', 'Image Requested'), ('image recorded', 'Image Recorded'), ('plan requested', 'Plan Requested'), ('plan recorded', 'Plan Recorded'), ('plan refused', 'Plan Refused'), ('plan approved', 'Plan Approved'), ('plan lapsed', 'Plan Lapsed'), ('recovery requested', 'Recovery Requested'), ('generation allocated', 'Generation Allocated'), ('claim granted', 'Claim Granted'), ('claim refused', 'Claim Refused'), ('claim settled', 'Claim Settled'), ('armed', 'Armed'), ('staged', 'Staged'), ('fired', 'Fired'), ('fire refused', 'Fire Refused'), ('verified', 'Verified'), ('handed over', 'Handed Over'), ('step', 'Step'), ('wanted', 'Wanted'), ('recovery taken over', 'Recovery Taken Over'), ('recovery troubled', 'Recovery Troubled'), ('recovery finished', 'Recovery Finished'), ('omission acknowledged', 'Omission Acknowledged'), ('omission withdrawn', 'Omission Withdrawn'), ('ledger decided', 'Ledger Decided'), ('archive registered', 'Archive Registered'), ('sink restored', 'Sink Restored'), ('sink cleared', 'Sink Cleared'), ('work failed', 'Work Failed'), ('end registered', 'End Registered'), ('retired', 'Retired'), ('pipeline changed', 'Pipeline Changed'), ('sink installed', 'Sink Installed'), ('content read', 'Content Read'), ('access denied', 'Access Denied'), ('token changed', 'Token Changed'), ('drill requested', 'Drill Requested'), ('alert acknowledged', 'Alert Acknowledged'), ('alerting changed', 'Alerting Changed'), ('drill recorded', 'Drill Recorded')], max_length=40),
        ),
        migrations.AddConstraint(
            model_name='event',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['pipeline created', 'end changed', 'audit requested', 'audit recorded', 'image requested', 'image recorded', 'plan requested', 'plan recorded', 'plan refused', 'plan approved', 'plan lapsed', 'recovery requested', 'generation allocated', 'claim granted', 'claim refused', 'claim settled', 'armed', 'staged', 'fired', 'fire refused', 'verified', 'handed over', 'step', 'wanted', 'recovery taken over', 'recovery troubled', 'recovery finished', 'omission acknowledged', 'omission withdrawn', 'ledger decided', 'archive registered', 'sink restored', 'sink cleared', 'work failed', 'end registered', 'retired', 'pipeline changed', 'sink installed', 'content read', 'access denied', 'token changed', 'drill requested', 'alert acknowledged', 'alerting changed', 'drill recorded'])), name='an_event_kind_is_known'),
        ),
        migrations.AddField(
            model_name='alert',
            name='pipeline',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='alerts', to='recovery_api.pipeline'),
        ),
        migrations.AddField(
            model_name='alert',
            name='sink',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='alerts', to='recovery_api.sink'),
        ),
        migrations.AddField(
            model_name='alert',
            name='source',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='alerts', to='recovery_api.source'),
        ),
        migrations.AddConstraint(
            model_name='alertgroup',
            constraint=models.UniqueConstraint(condition=models.Q(('closed_at__isnull', True)), fields=('cause', 'end', 'way'), name='an_open_group_is_one'),
        ),
        migrations.AddField(
            model_name='alert',
            name='group',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='alerts', to='recovery_api.alertgroup'),
        ),
        migrations.AddField(
            model_name='alertline',
            name='alert',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='lines', to='recovery_api.alert'),
        ),
        migrations.AddField(
            model_name='delivery',
            name='group',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='recovery_api.alertgroup'),
        ),
        migrations.AddConstraint(
            model_name='destination',
            constraint=models.UniqueConstraint(condition=models.Q(('retired_at__isnull', True)), fields=('name',), name='a_destination_name_is_registered_once'),
        ),
        migrations.AddConstraint(
            model_name='destination',
            constraint=models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='a_destination_has_a_name'),
        ),
        migrations.AddConstraint(
            model_name='destination',
            constraint=models.CheckConstraint(condition=models.Q(('shape__in', ['pagerduty', 'alertmanager', 'slack', 'json', 'email'])), name='a_destinations_shape_is_known'),
        ),
        migrations.AddField(
            model_name='delivery',
            name='destination',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='recovery_api.destination'),
        ),
        migrations.AddConstraint(
            model_name='mute',
            constraint=models.CheckConstraint(condition=models.Q(('by__in', ['pipeline', 'source', 'sink', 'label'])), name='a_mute_names_a_known_thing'),
        ),
        migrations.AddConstraint(
            model_name='mute',
            constraint=models.CheckConstraint(condition=models.Q(('until__gt', models.F('created_at'))), name='a_mute_has_an_end'),
        ),
        migrations.AddConstraint(
            model_name='mute',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('note', ''), _negated=True), models.Q(('value', ''), _negated=True)), name='a_mute_says_what_and_why'),
        ),
        migrations.AddField(
            model_name='route',
            name='destination',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='routes', to='recovery_api.destination'),
        ),
        migrations.AddIndex(
            model_name='alert',
            index=models.Index(fields=['pipeline', '-opened_at'], name='alerts_of_a_pipeline'),
        ),
        migrations.AddIndex(
            model_name='alert',
            index=models.Index(fields=['-resolved_at'], name='alerts_by_their_end'),
        ),
        migrations.AddIndex(
            model_name='alert',
            index=models.Index(condition=models.Q(('resolved_at__isnull', True)), fields=['group'], name='open_alerts_of_a_group'),
        ),
        migrations.AddConstraint(
            model_name='alert',
            constraint=models.UniqueConstraint(condition=models.Q(('resolved_at__isnull', True)), fields=('cause', 'subject'), name='a_cause_has_one_open_alert_a_subject'),
        ),
        migrations.AddConstraint(
            model_name='alert',
            constraint=models.CheckConstraint(condition=models.Q(('cause__in', ['owed', 'hazard', 'unknown', 'overdue', 'headroom_low', 'headroom_gone', 'recovery_unsettled', 'recovery_stuck', 'recovery_ended_badly', 'hand_over', 'relay_stalled', 'source_growth', 'ground_lost', 'generation_backwards', 'capability_weaker', 'kit_outdated', 'drill_failed', 'drill_old', 'no_worker', 'no_engine', 'no_broker'])), name='an_alerts_cause_is_known'),
        ),
        migrations.AddConstraint(
            model_name='alert',
            constraint=models.CheckConstraint(condition=models.Q(('severity__in', ['critical', 'error', 'warning'])), name='an_alerts_severity_is_known'),
        ),
        migrations.AddConstraint(
            model_name='alert',
            constraint=models.CheckConstraint(condition=models.Q(('told__in', ['nothing', 'firing', 'resolved'])), name='what_was_told_of_an_alert_is_known'),
        ),
        migrations.AddConstraint(
            model_name='alert',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('pipeline__isnull', False), ('sink__isnull', True), ('source__isnull', True)), models.Q(('pipeline__isnull', True), ('sink__isnull', True), ('source__isnull', False)), models.Q(('pipeline__isnull', True), ('sink__isnull', False), ('source__isnull', True)), models.Q(('pipeline__isnull', True), ('sink__isnull', True), ('source__isnull', True), ('subject', 'installation')), _connector='OR'), name='an_alert_is_about_one_thing'),
        ),
        migrations.AddConstraint(
            model_name='alert',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('acknowledged_at__isnull', True), ('acknowledged_until__isnull', True)), models.Q(('acknowledged_at__isnull', False), ('acknowledged_until__gt', models.F('acknowledged_at')), models.Q(('acknowledged_note', ''), _negated=True)), _connector='OR'), name='an_acknowledgement_has_a_note_and_an_end'),
        ),
        migrations.AddIndex(
            model_name='alertline',
            index=models.Index(fields=['alert', 'at'], name='lines_of_an_alert'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('due_at__isnull', False)), fields=['destination', 'due_at', 'number'], name='deliveries_that_are_due'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['destination', 'key', 'number'], name='deliveries_of_a_key'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['group', 'number'], name='deliveries_of_a_group'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['created_at'], name='deliveries_by_age'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['trigger', 'update', 'acknowledge', 'resolve', 'test'])), name='a_deliverys_kind_is_known'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'sending', 'sent', 'superseded', 'refused', 'given_up'])), name='a_deliverys_state_is_known'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.CheckConstraint(condition=models.Q(('due_at__isnull', False), models.Q(('state__in', ['waiting', 'sending']), _negated=True), _connector='OR'), name='a_delivery_that_waits_is_due_some_time'),
        ),
        migrations.AddConstraint(
            model_name='route',
            constraint=models.CheckConstraint(condition=models.Q(('least__in', ['critical', 'error', 'warning'])), name='a_routes_severity_is_known'),
        ),
    ]
