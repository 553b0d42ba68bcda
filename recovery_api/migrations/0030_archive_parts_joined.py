from django.db import migrations, models


class Migration(migrations.Migration):
    """The files of a day become one: which parts were looked at for that."""

    dependencies = [("recovery_api", "0029_omissions_named_by_content")]

    operations = [
        migrations.AddField(
            model_name="archivepart", name="joined_at", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddIndex(
            model_name="archivepart",
            index=models.Index(
                condition=models.Q(("audit__isnull", False), ("gone_at__isnull", True), ("joined_at__isnull", True)),
                fields=["written_at"],
                name="archive_parts_to_join",
            ),
        ),
    ]
