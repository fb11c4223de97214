"""The rules that a new site starts with. They speak of ordinary bookings; operators may edit them."""

from typing import Any

from django.db import migrations

DEFAULTS = (
    ("length", "max_length", 7 * 24),
    ("horizon", "horizon", 30),
    ("devices-at-once", "max_devices", 8),
)


def add(apps: Any, schema_editor: Any) -> None:
    rules = apps.get_model("reservations", "Rule").objects
    for name, kind, limit in DEFAULTS:
        rules.get_or_create(
            name=name, defaults={"kind": kind, "limit": limit, "match": {"kind": "normal"}}
        )


def remove(apps: Any, schema_editor: Any) -> None:
    names = [name for name, _, _ in DEFAULTS]
    apps.get_model("reservations", "Rule").objects.filter(name__in=names).delete()


class Migration(migrations.Migration):
    dependencies = [("reservations", "0002_audit_once")]
    operations = [migrations.RunPython(add, remove)]
