"""What answers look like, for OpenAPI. These classes describe; they never run over rows."""

from rest_framework import serializers

from reservations.api.serializers import PHASES
from reservations.core.lifecycle import Verb
from reservations.models import Booking, Device, Host


class Shape(serializers.Serializer[None]):
    """A JSON object."""


class PersonSerializer(Shape):
    username = serializers.CharField()
    name = serializers.CharField()


class BookedDeviceSerializer(Shape):
    uuid = serializers.CharField()
    host = serializers.CharField()
    index = serializers.IntegerField()
    name = serializers.CharField()


class OpeningSerializer(Shape):
    """A device of the booking is not open for its people yet."""

    state = serializers.ChoiceField(choices=["held_back"])
    reason = serializers.CharField()
    since = serializers.DateTimeField()


class CalendarRowSerializer(Shape):
    id = serializers.IntegerField()
    revision = serializers.IntegerField()
    state = serializers.ChoiceField(choices=Booking.State.choices)
    kind = serializers.ChoiceField(choices=Booking.Kind.choices)
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    devices = serializers.ListField(child=serializers.CharField(), help_text="UUIDs")
    owner = PersonSerializer(allow_null=True, help_text="null where the site hides it from you")
    people = serializers.ListField(child=serializers.CharField(), help_text="usernames")
    team = serializers.CharField(allow_null=True)
    pinned = serializers.BooleanField(help_text="the person chose these very devices")
    purpose = serializers.CharField(help_text="empty for those it is not for")
    opening = OpeningSerializer(
        allow_null=True,
        help_text="why it is held back; null once it is open, before the start, and for those it is not for",
    )


class BookingSerializer(CalendarRowSerializer):
    devices = BookedDeviceSerializer(many=True)  # type: ignore[assignment]
    phase = serializers.ChoiceField(choices=PHASES)
    planned_end = serializers.DateTimeField(help_text="the end last promised")
    keep_if_free = serializers.BooleanField()
    early_signal = serializers.BooleanField()
    source = serializers.CharField()  # type: ignore[assignment]
    ended_reason = serializers.CharField()
    created = serializers.DateTimeField()
    can = serializers.ListField(
        child=serializers.ChoiceField(choices=[verb.value for verb in Verb]),
        help_text="what you may do with it now",
    )


class CalendarDeviceSerializer(BookedDeviceSerializer):
    vendor = serializers.CharField(
        help_text="what reads it: `nvidia`, or `simulated` for a device that is none"
    )
    model = serializers.CharField()
    memory_bytes = serializers.IntegerField(allow_null=True)
    kind = serializers.ChoiceField(choices=Device.Kind.choices)
    parent = serializers.CharField(allow_null=True, help_text="UUID of the GPU it is a part of")  # type: ignore[assignment]
    bookable = serializers.BooleanField()
    managed_by = serializers.ChoiceField(choices=Device.ManagedBy.choices)
    state = serializers.ChoiceField(choices=Device.State.choices)


class CalendarSerializer(Shape):
    devices = CalendarDeviceSerializer(many=True)
    bookings = CalendarRowSerializer(many=True)


class DeviceSerializer(CalendarDeviceSerializer):
    state_since = serializers.DateTimeField(allow_null=True)
    current = CalendarRowSerializer(allow_null=True)
    next = CalendarRowSerializer(allow_null=True)
    sample = serializers.DictField(
        allow_null=True, help_text="the newest reading; null where there is none"
    )
    verdict = serializers.DictField(
        allow_null=True, help_text="`code`, `text`, `since`, `who`: what the reading means"
    )


class HoldSerializer(Shape):
    """Nothing is opened or closed on the host, and nobody is stopped there."""

    reason = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()


class HostSerializer(Shape):
    name = serializers.CharField()
    labels = serializers.DictField(child=serializers.CharField())
    mode = serializers.ChoiceField(choices=Host.Mode.choices)
    devices = serializers.IntegerField(help_text="how many, retired ones left out")
    last_seen = serializers.DateTimeField(allow_null=True)
    silent_since = serializers.DateTimeField(allow_null=True)
    agent_version = serializers.CharField()
    hold = HoldSerializer(allow_null=True)
    health = serializers.ListField(
        child=serializers.DictField(), help_text="what an operator should know; empty for others"
    )


class AlternativeSerializer(Shape):
    devices = serializers.ListField(child=serializers.CharField(), help_text="UUIDs")
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()


class BlockerSerializer(Shape):
    device = serializers.CharField()
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    owner = serializers.CharField(allow_null=True)
    booking = serializers.IntegerField(allow_null=True)


class ObjectionSerializer(Shape):
    rule = serializers.CharField()
    text = serializers.CharField()


class UsageSerializer(Shape):
    """How one rule's limit is used. ``unit``: hours, days, devices."""

    rule = serializers.CharField()
    kind = serializers.CharField()
    unit = serializers.CharField()
    limit = serializers.FloatField()
    used = serializers.FloatField()
    asked = serializers.FloatField()


class CheckSerializer(Shape):
    free = serializers.BooleanField()
    start = serializers.DateTimeField(allow_null=True)
    end = serializers.DateTimeField(allow_null=True)
    devices = serializers.ListField(child=serializers.CharField(), help_text="UUIDs")
    blockers = BlockerSerializer(many=True)
    objections = ObjectionSerializer(many=True)
    alternatives = AlternativeSerializer(many=True)
    quota = UsageSerializer(many=True)
    warnings = ObjectionSerializer(many=True, help_text="what rules say without refusing")
    needs_approval = serializers.BooleanField(help_text="it would wait for an operator")


class TeamSerializer(Shape):
    name = serializers.CharField()
    manager = serializers.BooleanField()


class MeSerializer(Shape):
    id = serializers.IntegerField()
    username = serializers.CharField()
    name = serializers.CharField()
    email = serializers.CharField()
    kind = serializers.CharField()
    is_operator = serializers.BooleanField()
    time_zone = serializers.CharField(help_text="IANA name: yours, else the site's")
    locale = serializers.CharField(help_text="empty: the browser's")
    teams = TeamSerializer(many=True)
    scopes = serializers.ListField(child=serializers.CharField())
    limits = UsageSerializer(many=True)


class BookingListSerializer(Shape):
    results = BookingSerializer(many=True)
    next = serializers.URLField(allow_null=True)


class DeviceListSerializer(Shape):
    results = DeviceSerializer(many=True)
    next = serializers.URLField(allow_null=True)


class HostListSerializer(Shape):
    results = HostSerializer(many=True)
    next = serializers.URLField(allow_null=True)


class SlotListSerializer(Shape):
    results = AlternativeSerializer(many=True)
    next = serializers.URLField(allow_null=True)


class ProblemSerializer(Shape):
    """RFC 9457. `code` is stable; the sentences are for people and may change."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField()
    detail = serializers.CharField()
    errors = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="with `invalid`",
    )
    blockers = BlockerSerializer(many=True, required=False, help_text="with `slot_taken`")
    objections = ObjectionSerializer(many=True, required=False, help_text="with `refused`")
    alternatives = AlternativeSerializer(
        many=True, required=False, help_text="with `slot_taken` and `refused`"
    )
    booking = BookingSerializer(required=False, help_text="with `stale`: the booking as it is now")
