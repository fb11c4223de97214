from django.apps import AppConfig


class WebappConfig(AppConfig):
    name = "webapp"

    def ready(self) -> None:
        """Register the checks of the settings."""
        from webapp import checks, deploy_checks  # noqa: F401 -- registered once the settings are there
