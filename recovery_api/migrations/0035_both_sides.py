from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('recovery_api', '0034_incidents'),
    ]

    operations = [
        migrations.AlterField(
            model_name='eventcontent',
            name='body',
            field=models.BinaryField(null=True),
        ),
        migrations.AddField(
            model_name='eventcontent',
            name='sink_body',
            field=models.BinaryField(null=True),
        ),
        migrations.AddField(
            model_name='ledgeritem',
            name='shown_key',
            field=models.TextField(blank=True, null=True),
        ),
        migrations.RemoveConstraint(
            model_name='event',
            name='an_event_kind_is_known',
        ),
        migrations.AlterField(
            model_name='event',
            name='kind',
            field=models.CharField(choices=[('pipeline created', 'Pipeline Created'), ('end changed', 'End Changed'), ('audit requested', 'Audit Requested'), ('audit recorded', 'Audit Recorded'), ('image requested', 'Image Requested'), ('image recorded', 'Image Recorded'), ('plan requested', 'Plan Requested'), ('plan recorded', 'Plan Recorded'), ('plan refused', 'Plan Refused'), ('plan approved', 'Plan Approved'), ('plan lapsed', 'Plan Lapsed'), ('recovery requested', 'Recovery Requested'), ('generation allocated', 'Generation Allocated'), ('claim granted', 'Claim Granted'), ('claim refused', 'Claim Refused'), ('claim settled', 'Claim Settled'), ('armed', 'Armed'), ('staged', 'Staged'), ('fired', 'Fired'), ('fire refused', 'Fire Refused'), ('verified', 'Verified'), ('handed over', 'Handed Over'), ('step', 'Step'), ('wanted', 'Wanted'), ('recovery taken over', 'Recovery Taken Over'), ('recovery troubled', 'Recovery Troubled'), ('recovery finished', 'Recovery Finished'), ('omission acknowledged', 'Omission Acknowledged'), ('omission withdrawn', 'Omission Withdrawn'), ('finding left', 'Finding Left'), ('ledger decided', 'Ledger Decided'), ('archive registered', 'Archive Registered'), ('sink restored', 'Sink Restored'), ('sink cleared', 'Sink Cleared'), ('work failed', 'Work Failed'), ('end registered', 'End Registered'), ('retired', 'Retired'), ('pipeline changed', 'Pipeline Changed'), ('sink installed', 'Sink Installed'), ('content read', 'Content Read'), ('access denied', 'Access Denied'), ('token changed', 'Token Changed'), ('frozen', 'Frozen'), ('unfrozen', 'Unfrozen'), ('incident opened', 'Incident Opened'), ('incident changed', 'Incident Changed'), ('incident noted', 'Incident Noted'), ('drill requested', 'Drill Requested'), ('alert acknowledged', 'Alert Acknowledged'), ('alerting changed', 'Alerting Changed'), ('drill recorded', 'Drill Recorded')], max_length=40),
        ),
        migrations.AddConstraint(
            model_name='event',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['pipeline created', 'end changed', 'audit requested', 'audit recorded', 'image requested', 'image recorded', 'plan requested', 'plan recorded', 'plan refused', 'plan approved', 'plan lapsed', 'recovery requested', 'generation allocated', 'claim granted', 'claim refused', 'claim settled', 'armed', 'staged', 'fired', 'fire refused', 'verified', 'handed over', 'step', 'wanted', 'recovery taken over', 'recovery troubled', 'recovery finished', 'omission acknowledged', 'omission withdrawn', 'finding left', 'ledger decided', 'archive registered', 'sink restored', 'sink cleared', 'work failed', 'end registered', 'retired', 'pipeline changed', 'sink installed', 'content read', 'access denied', 'token changed', 'frozen', 'unfrozen', 'incident opened', 'incident changed', 'incident noted', 'drill requested', 'alert acknowledged', 'alerting changed', 'drill recorded'])), name='an_event_kind_is_known'),
        ),
    ]
