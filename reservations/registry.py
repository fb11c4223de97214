"""Plugins by dotted path, loaded and checked once at start."""

from collections.abc import Sequence
from functools import cache

from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils.module_loading import import_string

from reservations.core.rules import base
from reservations.models import Rule as RuleRow


@cache
def rule_kinds() -> dict[str, type[base.Rule]]:
    """Every kind of rule that this site knows, by name.

    Raises:
        ImproperlyConfigured: a path of ``RULE_KINDS`` leads nowhere, or two kinds share a name.
    """
    kinds: dict[str, type[base.Rule]] = {}
    for path in settings.RULE_KINDS:
        try:
            rule: type[base.Rule] = import_string(path)
            missing = [name for name in ("kind", "unit", "objection") if not hasattr(rule, name)]
        except ImportError as error:
            raise ImproperlyConfigured(f"RULE_KINDS: {path}: {error}") from error
        if missing:
            raise ImproperlyConfigured(f"RULE_KINDS: {path} lacks {', '.join(missing)}")
        if rule.kind in kinds:
            raise ImproperlyConfigured(f"RULE_KINDS: {path}: there is a {rule.kind} already")
        kinds[rule.kind] = rule
    return kinds


def fault_of(row: RuleRow) -> str | None:
    """Why this row cannot be obeyed, or None."""
    if row.kind not in rule_kinds():
        return f"unknown kind {row.kind!r}; known: {', '.join(sorted(rule_kinds()))}"
    return base.check_match(row.match)


def rule_of(row: RuleRow) -> base.Rule:
    """Raises ``ImproperlyConfigured``: a rule that cannot be obeyed must not be passed over."""
    if fault := fault_of(row):
        raise ImproperlyConfigured(f"rule {row.name}: {fault}")
    return rule_kinds()[row.kind](
        base.Terms(name=row.name, limit=row.limit, match=row.match, scope=row.scope)
    )


@checks.register
def check_kinds(**_: object) -> list[checks.CheckMessage]:
    try:
        rule_kinds()
    except ImproperlyConfigured as error:
        return [checks.Error(str(error), id="reservations.E001")]
    return []


@checks.register(checks.Tags.database)
def check_rows(*, databases: Sequence[str] | None = None, **_: object) -> list[checks.CheckMessage]:
    """Rules that cannot be obeyed stop the start, instead of letting everything pass."""
    faults: list[checks.CheckMessage] = []
    for alias in databases or ():
        if RuleRow._meta.db_table not in connections[alias].introspection.table_names():
            continue
        rows = RuleRow.objects.using(alias).only("name", "kind", "match")
        faults.extend(
            checks.Error(f"rule {row.name}: {fault}", id="reservations.E002")
            for row in rows
            if (fault := fault_of(row))
        )
    return faults
