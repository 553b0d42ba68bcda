"""Which audit an audit goes on from was never written down by any version."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("recovery_api", "0017_a_delivery_of_its_own")]

    operations = [migrations.RemoveField("audit", "continues")]
