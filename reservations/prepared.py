"""Statements of the booking path, written with the ORM and compiled once.

Django builds its SQL anew at every call. On the road of a booking, nine small statements, that took more
time than the database did (docs/decisions/0007-prepared-statements.md). A ``Prepared`` queryset is compiled
at its first use, with named values left open; later calls only bind them, and PostgreSQL keeps its plan.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import psycopg
from django.db import connection
from django.db.models import BooleanField, Expression, Field, Func, Model, QuerySet

M = TypeVar("M", bound=Model)


class Bind(Expression):
    """A value that is given at each call, under this name."""

    def __init__(self, name: str, output_field: "Field[Any, Any]") -> None:
        super().__init__(output_field=output_field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return "%s", [self]  # itself, until the call puts the value in its place

    def value(self, values: dict[str, Any]) -> Any:
        return self.output_field.get_db_prep_value(values[self.name], connection)


class OneOf(Func):
    """Whether a column is one of a list whose length is known only at each call."""

    output_field = BooleanField()

    def __init__(self, column: str, name: str) -> None:
        super().__init__(column)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any, **_: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        column, parameters = compiler.compile(self.source_expressions[0])
        if connection.vendor == "postgresql":
            return f"{column} = ANY(%s)", [*parameters, self]
        # SQLite takes no lists, but reads one from JSON.
        chosen = "(SELECT value FROM json_each(%s))"
        return f"{column} IN {chosen}", [*parameters, self]

    def value(self, values: dict[str, Any]) -> Any:
        chosen = list(values[self.name])
        return chosen if connection.vendor == "postgresql" else json.dumps(chosen)


def _execute(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    if connection.vendor != "postgresql" or connection.queries_logged:
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            return list(cursor.fetchall())
    # Django's own cursor puts values into the text; psycopg's sends them beside it, so that the plan of
    # the statement can be kept (``prepare_threshold`` in webapp/env.py). It keeps no log of queries: who
    # asks for one (debugging, counting in tests) gets Django's cursor above.
    connection.ensure_connection()
    connection.validate_thread_sharing()
    connection.validate_no_broken_transaction()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        return list(cursor.execute(sql, values).fetchall())


@dataclass(frozen=True)
class _Compiled:
    sql: str
    parameters: tuple[Any, ...]
    compiler: Any
    converters: dict[int, Any]


class Prepared:
    """A queryset whose SQL is built once for each kind of database."""

    def __init__(self, build: Callable[[], "QuerySet[Any, Any]"]) -> None:
        self._build = build
        self._compiled: dict[str, _Compiled] = {}

    def rows(self, **values: Any) -> list[tuple[Any, ...]]:
        """The columns as the queryset selects them, converted as Django does."""
        compiled = self._compiled.get(connection.vendor) or self._compile()
        bound = [
            one.value(values) if isinstance(one, (Bind, OneOf)) else one
            for one in compiled.parameters
        ]
        found = _execute(compiled.sql, bound)
        if compiled.converters:
            converted = compiled.compiler.apply_converters(found, compiled.converters)
            return [tuple(row) for row in converted]
        return found

    def _compile(self) -> _Compiled:
        compiler = self._build().query.get_compiler(connection=connection)
        sql, parameters = compiler.as_sql()
        columns = [column for column, *_ in compiler.select]
        made = _Compiled(sql, tuple(parameters), compiler, compiler.get_converters(columns))
        self._compiled[connection.vendor] = made
        return made


@cache
def columns(model: type[Model], *, through: str = "") -> list[str]:
    """The names of all columns of a model, for ``values_list``; ``through`` is a relation to it."""
    prefix = f"{through}__" if through else ""
    return [prefix + field.attname for field in model._meta.concrete_fields]


def instance(model: type[M], row: Sequence[Any]) -> M:
    """A row of ``columns(model)`` as an instance."""
    return model.from_db(connection.alias, columns(model), row)


def insert(rows: Sequence[Model]) -> None:
    """Write new rows of one model in one statement, and give them their keys."""
    model = type(rows[0])
    values = [
        field.get_db_prep_save(field.pre_save(row, add=True), connection)
        for row in rows
        for field in _written(model)
    ]
    keys = _execute(_insert_sql(model, len(rows)), values)
    for row, (key,) in zip(rows, keys, strict=True):
        row.pk = key
        row._state.adding = False
        row._state.db = connection.alias


@cache
def _written(model: type[Model]) -> list[Any]:
    """All columns but the key, which the database gives."""
    return [field for field in model._meta.concrete_fields if not field.primary_key]


def _insert_sql(model: type[Model], count: int) -> str:
    quote = connection.ops.quote_name
    fields = _written(model)
    names = ", ".join(quote(field.column) for field in fields)
    one = f"({', '.join(['%s'] * len(fields))})"
    key = quote(str(model._meta.pk.column))
    table = quote(model._meta.db_table)
    rows = ", ".join([one] * count)
    return f"INSERT INTO {table} ({names}) VALUES {rows} RETURNING {key}"  # noqa: S608 -- names of ours
