"""The web process with its row locks taken away; the measurement drops the constraint as well."""

from typing import Any

from django.db.models import QuerySet

from webapp import asgi

application = asgi.application


def _unlocked(self: QuerySet[Any], *_: Any, **__: Any) -> QuerySet[Any]:
    return self.all()


QuerySet.select_for_update = _unlocked
