import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('recovery_api', '0035_both_sides'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='LastLook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('subject', models.CharField(max_length=40)),
                ('seen_at', models.DateTimeField()),
                ('before_at', models.DateTimeField(blank=True, null=True)),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('person', 'subject'), name='a_person_looks_at_a_thing_in_one_row'), models.CheckConstraint(condition=models.Q(('before_at__isnull', True), ('before_at__lte', models.F('seen_at')), _connector='OR'), name='a_look_before_is_not_later')],
            },
        ),
        migrations.CreateModel(
            name='SavedFilter',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=100)),
                ('query', models.CharField(max_length=2000)),
                ('created_at', models.DateTimeField()),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='saved_filters', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['name'],
                'constraints': [models.UniqueConstraint(fields=('person', 'name'), name='a_person_has_one_filter_of_a_name'), models.CheckConstraint(condition=models.Q(models.Q(('name', ''), _negated=True), models.Q(('query', ''), _negated=True)), name='a_saved_filter_has_a_name_and_filters')],
            },
        ),
    ]
