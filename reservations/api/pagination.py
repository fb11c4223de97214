"""Pages by cursor over a stable order, so that nothing is missed or seen twice while rows come and go.

A cursor holds the sort values of the last row that was handed out, signed, so that nothing else can
stand in it; the next page starts after them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from django.core import signing
from django.db.models import Model, Q, QuerySet
from rest_framework import serializers
from rest_framework.request import Request

from reservations.api.fields import Strict
from reservations.core.errors import Invalid

MAX_PAGE_SIZE: Final = 500
DEFAULT_PAGE_SIZE: Final = 100

M = TypeVar("M", bound=Model)


class PageQuery(Strict):
    """Mixed into the query of every list."""

    cursor = serializers.CharField(
        required=False, max_length=500, help_text="taken from `next`; opaque"
    )
    page_size = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_PAGE_SIZE, default=DEFAULT_PAGE_SIZE
    )


@dataclass(frozen=True)
class Order:
    """Fields that together order the rows without ties, and their values on a row, ready for JSON."""

    fields: tuple[str, ...]
    values: Callable[[Any], list[Any]]

    def after(self, cursor: str) -> Q:
        """The rows behind the cursor.

        Raises:
            Invalid: no list in this order gave it out.
        """
        try:
            values = signing.loads(cursor, salt=self._salt)
        except signing.BadSignature:
            raise Invalid({"cursor": ["is not one that this list gave out"]}) from None
        return _behind(self.fields, values)

    def cursor(self, row: Any) -> str:
        return signing.dumps(self.values(row), salt=self._salt)

    @property
    def _salt(self) -> str:
        return f"cursor:{','.join(self.fields)}"


BY_START = Order(("start", "id"), lambda row: [row.start.isoformat(), row.pk])
BY_NAME = Order(("name",), lambda row: [row.name])
BY_PLACE = Order(("host__name", "index", "uuid"), lambda row: [row.host.name, row.index, row.uuid])


def page(
    rows: "QuerySet[M]", *, order: Order, request: Request, query: dict[str, Any]
) -> tuple[list[M], str | None]:
    """The rows of this page, and the address of the next one or None."""
    size = query["page_size"]
    if cursor := query.get("cursor"):
        rows = rows.filter(order.after(cursor))
    found = list(rows.order_by(*order.fields)[: size + 1])
    if len(found) <= size:
        return found, None
    following = request.GET.copy()
    following["cursor"] = order.cursor(found[size - 1])
    return found[:size], request.build_absolute_uri(f"{request.path}?{following.urlencode()}")


def _behind(fields: Sequence[str], values: Sequence[Any]) -> Q:
    """(a, b) > (x, y) as: a >= x and (a > x or b > y); the first half is what an index can use."""
    field, value = fields[0], values[0]
    if len(fields) == 1:
        return Q(**{f"{field}__gt": value})
    return Q(**{f"{field}__gte": value}) & (
        Q(**{f"{field}__gt": value}) | _behind(fields[1:], values[1:])
    )
