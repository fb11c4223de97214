"""Overlap made impossible by the database itself, from one declaration for both databases.

PostgreSQL gets an exclusion constraint; SQLite, which has none, gets an insert and an update trigger
that abort. Services look under locks first, so that people get a good answer; this has the last word.
"""

from collections.abc import Iterator
from typing import Any

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField
from django.db import DEFAULT_DB_ALIAS
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.ddl_references import Statement, Table
from django.db.models import Func, Model

_TRIGGER = """
CREATE TRIGGER %(name)s BEFORE %(event)s ON %(table)s WHEN NEW.holds BEGIN
  SELECT RAISE(ABORT, '{constraint}') WHERE EXISTS (
    SELECT 1 FROM %(table)s other
    WHERE other.device_id = NEW.device_id AND other.holds AND other.id IS NOT NEW.id
      AND other."start" < NEW."end" AND other."end" > NEW."start");
END
"""


class TsTzRange(Func):
    function = "TSTZRANGE"
    output_field = DateTimeRangeField()


class NoOverlap(ExclusionConstraint):
    """No two holding rows of one device share an instant. For a model with device, start, end, holds."""

    def _triggers(
        self, model: type[Model], schema_editor: BaseDatabaseSchemaEditor
    ) -> Iterator[Statement]:
        quote = schema_editor.quote_name
        for suffix, event in (("insert", "INSERT"), ("update", "UPDATE")):
            yield Statement(
                _TRIGGER.format(constraint=self.name),
                name=quote(f"{self.name}_{suffix}"),
                event=event,
                table=Table(model._meta.db_table, quote),
            )

    def constraint_sql(self, model: Any, schema_editor: Any) -> Any:
        if schema_editor.connection.vendor == "postgresql":
            return super().constraint_sql(model, schema_editor)
        # Inside CREATE TABLE a trigger has no place: it follows once the table stands.
        schema_editor.deferred_sql.extend(self._triggers(model, schema_editor))
        return None

    def create_sql(self, model: Any, schema_editor: Any) -> Any:
        if schema_editor.connection.vendor == "postgresql":
            return super().create_sql(model, schema_editor)
        schema_editor.deferred_sql.extend(self._triggers(model, schema_editor))
        return None

    def remove_sql(self, model: Any, schema_editor: Any) -> Any:
        if schema_editor.connection.vendor == "postgresql":
            return super().remove_sql(model, schema_editor)
        schema_editor.execute(
            f"DROP TRIGGER IF EXISTS {schema_editor.quote_name(self.name + '_update')}"
        )
        return f"DROP TRIGGER IF EXISTS {schema_editor.quote_name(self.name + '_insert')}"

    def validate(
        self, model: Any, instance: Any, exclude: Any = None, using: str = DEFAULT_DB_ALIAS
    ) -> None:
        """Nothing: a look without the locks proves nothing, and the database decides anyway."""
