"""What answers look like, for OpenAPI. These classes describe; they never run over rows."""

from rest_framework import serializers

from reservations.api.serializers import PHASES
from reservations.core.lifecycle import Verb
from reservations.models import Booking, Device, Host


class Shape(serializers.Serializer[None]):
    """A JSON object."""


class PersonShape(Shape):
    username = serializers.CharField()
    name = serializers.CharField()


class BookedDeviceShape(Shape):
    uuid = serializers.CharField()
    host = serializers.CharField()
    index = serializers.IntegerField()
    name = serializers.CharField()


class CalendarRowShape(Shape):
    id = serializers.IntegerField()
    revision = serializers.IntegerField()
    state = serializers.ChoiceField(choices=Booking.State.choices)
    kind = serializers.ChoiceField(choices=Booking.Kind.choices)
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    devices = serializers.ListField(child=serializers.CharField(), help_text="UUIDs")
    owner = PersonShape(allow_null=True, help_text="null where the site hides it from you")
    people = serializers.ListField(child=serializers.CharField(), help_text="usernames")
    team = serializers.CharField(allow_null=True)
    pinned = serializers.BooleanField(help_text="the person chose these very devices")
    purpose = serializers.CharField(help_text="empty for those it is not for")


class BookingShape(CalendarRowShape):
    devices = BookedDeviceShape(many=True)  # type: ignore[assignment]
    phase = serializers.ChoiceField(choices=PHASES)
    planned_end = serializers.DateTimeField(help_text="the end last promised")
    keep_if_free = serializers.BooleanField()
    early_signal = serializers.BooleanField()
    source = serializers.CharField()
    ended_reason = serializers.CharField()
    created = serializers.DateTimeField()
    can = serializers.ListField(
        child=serializers.ChoiceField(choices=[verb.value for verb in Verb]),
        help_text="what you may do with it now",
    )


class CalendarDeviceShape(BookedDeviceShape):
    model = serializers.CharField()
    memory_bytes = serializers.IntegerField(allow_null=True)
    kind = serializers.ChoiceField(choices=Device.Kind.choices)
    parent = serializers.CharField(allow_null=True, help_text="UUID of the GPU it is a part of")
    bookable = serializers.BooleanField()
    managed_by = serializers.ChoiceField(choices=Device.ManagedBy.choices)
    state = serializers.ChoiceField(choices=Device.State.choices)


class CalendarShape(Shape):
    devices = CalendarDeviceShape(many=True)
    bookings = CalendarRowShape(many=True)


class DeviceShape(CalendarDeviceShape):
    state_since = serializers.DateTimeField(allow_null=True)
    current = CalendarRowShape(allow_null=True)
    next = CalendarRowShape(allow_null=True)
    sample = serializers.DictField(
        allow_null=True, help_text="the newest reading; null where there is none"
    )
    verdict = serializers.DictField(
        allow_null=True, help_text="`code`, `text`, `since`, `who`: what the reading means"
    )


class HostShape(Shape):
    name = serializers.CharField()
    labels = serializers.DictField(child=serializers.CharField())
    mode = serializers.ChoiceField(choices=Host.Mode.choices)
    devices = serializers.IntegerField(help_text="how many, retired ones left out")
    last_seen = serializers.DateTimeField(allow_null=True)
    silent_since = serializers.DateTimeField(allow_null=True)
    agent_version = serializers.CharField()
    health = serializers.ListField(
        child=serializers.DictField(), help_text="what an operator should know; empty for others"
    )


class AlternativeShape(Shape):
    devices = serializers.ListField(child=serializers.CharField(), help_text="UUIDs")
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()


class BlockerShape(Shape):
    device = serializers.CharField()
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    owner = serializers.CharField(allow_null=True)
    booking = serializers.IntegerField(allow_null=True)


class ObjectionShape(Shape):
    rule = serializers.CharField()
    text = serializers.CharField()


class UsageShape(Shape):
    """How one rule's limit is used. ``unit``: hours, days, devices."""

    rule = serializers.CharField()
    kind = serializers.CharField()
    unit = serializers.CharField()
    limit = serializers.FloatField()
    used = serializers.FloatField()
    asked = serializers.FloatField()


class CheckShape(Shape):
    free = serializers.BooleanField()
    start = serializers.DateTimeField(allow_null=True)
    end = serializers.DateTimeField(allow_null=True)
    devices = serializers.ListField(child=serializers.CharField(), help_text="UUIDs")
    blockers = BlockerShape(many=True)
    objections = ObjectionShape(many=True)
    alternatives = AlternativeShape(many=True)
    quota = UsageShape(many=True)
    warnings = ObjectionShape(many=True, help_text="what rules say without refusing")
    needs_approval = serializers.BooleanField(help_text="it would wait for an operator")


class TeamShape(Shape):
    name = serializers.CharField()
    manager = serializers.BooleanField()


class MeShape(Shape):
    id = serializers.IntegerField()
    username = serializers.CharField()
    name = serializers.CharField()
    email = serializers.CharField()
    kind = serializers.CharField()
    is_operator = serializers.BooleanField()
    time_zone = serializers.CharField(help_text="IANA name: yours, else the site's")
    locale = serializers.CharField(help_text="empty: the browser's")
    teams = TeamShape(many=True)
    scopes = serializers.ListField(child=serializers.CharField())
    limits = UsageShape(many=True)


class BookingListShape(Shape):
    results = BookingShape(many=True)
    next = serializers.URLField(allow_null=True)


class DeviceListShape(Shape):
    results = DeviceShape(many=True)
    next = serializers.URLField(allow_null=True)


class HostListShape(Shape):
    results = HostShape(many=True)
    next = serializers.URLField(allow_null=True)


class SlotListShape(Shape):
    results = AlternativeShape(many=True)
    next = serializers.URLField(allow_null=True)


class ProblemShape(Shape):
    """RFC 9457. `code` is stable; the sentences are for people and may change."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField()
    detail = serializers.CharField()
    errors = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="with `invalid`",
    )
    blockers = BlockerShape(many=True, required=False, help_text="with `slot_taken`")
    objections = ObjectionShape(many=True, required=False, help_text="with `refused`")
    alternatives = AlternativeShape(
        many=True, required=False, help_text="with `slot_taken` and `refused`"
    )
    booking = BookingShape(required=False, help_text="with `stale`: the booking as it is now")
