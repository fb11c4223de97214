"""The one row of the site, from the start: rules that count everybody are asked under its lock."""

import secrets
from typing import Any

from django.db import migrations


def add(apps: Any, schema_editor: Any) -> None:
    sites = apps.get_model("reservations", "Site").objects
    sites.get_or_create(pk=1, defaults={"plan_epoch": secrets.token_hex(16)})


class Migration(migrations.Migration):
    dependencies = [("reservations", "0005_notice_waiting")]
    operations = [migrations.RunPython(add, migrations.RunPython.noop)]
