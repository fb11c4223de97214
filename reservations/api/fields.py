"""How single values arrive: strictly, with a sentence that says what would be right."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

_RFC_3339: Final = re.compile(
    r"(?P<local>\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)"
    r"(?:(?P<utc>[Zz])|(?P<sign>[ +-])(?P<offset>\d\d:?\d\d))?",
    re.ASCII,
)
# Beyond these no calendar makes sense, and adding a duration could leave what `datetime` can hold.
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)
TEN_YEARS_S: Final = 10 * 366 * 86_400


class Strict(serializers.Serializer[Any]):
    """Refuses what it does not know, by name. ``from_`` is spelled ``from`` outside of Python."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {name.rstrip("_"): field for name, field in super().get_fields().items()}

    def to_internal_value(self, data: Any) -> Any:
        errors: dict[str, Any] = {}
        if isinstance(data, Mapping):
            known = ", ".join(self.fields)
            errors = {
                str(name)[:100]: [f"is not known here; known are: {known}"]
                for name in data
                if name not in self.fields
            }
        try:
            values = super().to_internal_value(data)
        except ValidationError as error:
            raise ValidationError({**errors, **error.detail}) from None  # type: ignore[dict-item]
        if errors:
            raise ValidationError(errors)
        return values


@extend_schema_field(OpenApiTypes.DATETIME)
class InstantField(serializers.Field[datetime, Any, str, Any]):
    """RFC 3339 with offset, as an aware instant in UTC.

    In a query a ``+`` that was not escaped arrives as a space; it is taken for the plus it was.
    """

    default_error_messages = {
        "form": "must be a time such as 2027-03-01T09:00:00Z or 2027-03-01T10:00:00+01:00",
        "naive": "needs its offset from UTC, such as 2027-03-01T10:00:00+01:00 or …Z",
        "range": "must lie between the years 2000 and 2200",
    }

    def to_internal_value(self, data: Any) -> datetime:
        match = _RFC_3339.fullmatch(data.strip()) if isinstance(data, str) else None
        if match is None:
            self.fail("form")
        if not (match["utc"] or match["offset"]):
            self.fail("naive")
        zone = "+00:00" if match["utc"] else match["sign"].replace(" ", "+") + match["offset"]
        try:
            instant = datetime.fromisoformat(match["local"].upper() + zone).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail("form")
        if not _EARLIEST <= instant < _LATEST:
            self.fail("range")
        return instant

    def to_representation(self, value: datetime) -> str:
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


class GibField(serializers.FloatField):
    """Memory in GiB: a finite number that is not negative."""

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=0, max_value=1_000_000, **options)

    def to_internal_value(self, data: Any) -> float:
        value = super().to_internal_value(data)
        if not math.isfinite(value):
            self.fail("invalid")
        return value


def duration_field(**options: Any) -> serializers.IntegerField:
    return serializers.IntegerField(**{"min_value": 1, "max_value": TEN_YEARS_S, **options})


def uuid_field(**options: Any) -> serializers.CharField:
    """A device's UUID as its vendor writes it, such as ``GPU-8f2c…``."""
    return serializers.CharField(max_length=64, **options)
