from django.apps import AppConfig


class RecoveryApiConfig(AppConfig):
    name = "recovery_api"
    verbose_name = "Fencepost"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from recovery_api import checks  # noqa: F401  registers the system checks
