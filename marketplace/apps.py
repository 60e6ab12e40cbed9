"""The one Django app."""

from django.apps import AppConfig


class MarketplaceConfig(AppConfig):
    name = "marketplace"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Linkproof"

    def ready(self) -> None:
        from marketplace import checks  # noqa: F401  registers the system checks
