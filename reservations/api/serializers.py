"""What requests may contain: names and types. Whether it makes sense, the services say."""

from datetime import timedelta
from typing import Any

from rest_framework import serializers

from reservations.api.fields import (
    GibField,
    InstantField,
    Strict,
    duration_field,
    uuid_field,
)
from reservations.api.pagination import PageQuery
from reservations.models import Booking
from reservations.services.holds import LONGEST, MAX_REASON
from reservations.services.wishes import (
    MAX_DEVICES,
    MAX_PEOPLE,
    MAX_PURPOSE,
    Change,
    DeviceFilter,
    Wish,
)

NAME_LENGTH = 150
PHASES = ("pending", "upcoming", "active", "ended", "cancelled", "rejected")


class FilterFields(Strict):
    """Which devices would do, where none are named."""

    count = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_DEVICES, help_text="how many devices"
    )
    model = serializers.CharField(required=False, max_length=200, help_text="exact model name")
    host = serializers.CharField(required=False, max_length=63)
    min_memory_gib = GibField(required=False)
    same_host = serializers.BooleanField(
        required=False, default=True, help_text="all on one host; only matters with `count`"
    )


class BookBody(FilterFields):
    devices = serializers.ListField(
        child=uuid_field(), required=False, max_length=MAX_DEVICES, help_text="or give `count`"
    )
    labels = serializers.DictField(
        child=serializers.CharField(max_length=200), required=False, help_text="labels of the host"
    )
    start = InstantField(required=False, help_text="omitted: now if free, else the earliest")
    end = InstantField(required=False, help_text="or give `duration_s`")
    duration_s = duration_field(required=False)
    purpose = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=MAX_PURPOSE
    )
    team = serializers.CharField(required=False, allow_null=True, max_length=100)
    people = serializers.ListField(
        child=serializers.CharField(max_length=NAME_LENGTH),
        required=False,
        max_length=MAX_PEOPLE,
        help_text="usernames of others who may use the devices",
    )
    keep_if_free = serializers.BooleanField(required=False, default=False)
    early_signal = serializers.BooleanField(required=False, default=False)
    owner = serializers.CharField(
        required=False, max_length=NAME_LENGTH, help_text="operators only"
    )
    kind = serializers.ChoiceField(
        choices=Booking.Kind.choices, required=False, default="normal", help_text="operators only"
    )


class CheckBody(BookBody):
    booking = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**63 - 1,
        help_text="an existing booking that is to be moved: it does not stand in its own way",
    )


class MoveBody(Strict):
    start = InstantField(required=False)
    end = InstantField(required=False)
    devices = serializers.ListField(child=uuid_field(), required=False, max_length=MAX_DEVICES)
    purpose = serializers.CharField(required=False, allow_blank=True, max_length=MAX_PURPOSE)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError(
                {"body": [f"names nothing to change; it can be {', '.join(self.fields)}"]}
            )
        return attrs


class ExtendBody(Strict):
    duration_s = duration_field(required=False, help_text="how much longer")
    end = InstantField(required=False, help_text="or the new end")


class HoldBody(Strict):
    reason = serializers.CharField(max_length=MAX_REASON, help_text="everybody reads it")
    duration_s = duration_field(max_value=int(LONGEST.total_seconds()), help_text="at most 7 days")


class NoBody(Strict):
    """Nothing, or ``{}``."""


class BookingsQuery(PageQuery):
    mine = serializers.BooleanField(required=False, help_text="owned by or shared with me")
    owner = serializers.CharField(required=False, max_length=NAME_LENGTH, help_text="username")
    team = serializers.CharField(required=False, max_length=100, help_text="name")
    host = serializers.CharField(required=False, max_length=63)
    device = uuid_field(required=False)
    state = serializers.ChoiceField(choices=Booking.State.choices, required=False)
    phase = serializers.ChoiceField(choices=PHASES, required=False)
    from_ = InstantField(required=False, help_text="bookings that end after this")
    to = InstantField(required=False, help_text="bookings that start before this")


class DevicesQuery(PageQuery):
    host = serializers.CharField(required=False, max_length=63)


class CalendarQuery(Strict):
    from_ = InstantField()
    to = InstantField(help_text="at most 62 days after `from`")
    host = serializers.CharField(required=False, max_length=63)


class SlotsQuery(FilterFields):
    count = serializers.IntegerField(min_value=1, max_value=MAX_DEVICES)
    duration_s = duration_field()
    after = InstantField(required=False, help_text="default: now")
    limit = serializers.IntegerField(required=False, min_value=1, max_value=50, default=5)


def wish_of(data: dict[str, Any]) -> Wish:
    """The wish that a validated BookBody or CheckBody describes."""
    return Wish(
        devices=tuple(data.get("devices", ())),
        count=data.get("count"),
        filter=filter_of(data),
        start=data.get("start"),
        end=data.get("end"),
        duration=duration_of(data),
        purpose=data["purpose"],
        team=data.get("team"),
        people=tuple(data.get("people", ())),
        keep_if_free=data["keep_if_free"],
        early_signal=data["early_signal"],
        owner=data.get("owner"),
        kind=data["kind"],
    )


def filter_of(data: dict[str, Any]) -> DeviceFilter:
    return DeviceFilter(
        model=data.get("model"),
        host=data.get("host"),
        min_memory_gib=data.get("min_memory_gib"),
        labels=data.get("labels", {}),
        same_host=data["same_host"],
    )


def change_of(data: dict[str, Any]) -> Change:
    devices = data.get("devices")
    return Change(
        start=data.get("start"),
        end=data.get("end"),
        devices=None if devices is None else tuple(devices),
        purpose=data.get("purpose"),
    )


def duration_of(data: dict[str, Any]) -> timedelta | None:
    return timedelta(seconds=data["duration_s"]) if "duration_s" in data else None
