"""The plain booking form. Wall-clock times are those of the person's zone."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from reservations.models import Device
from reservations.services import placing
from reservations.services.wishes import MAX_PURPOSE, DeviceFilter, Wish
from webapp import walltime

# For so long after the form was opened a start of "now" still means now.
START_STAYS_NOW = timedelta(minutes=15)


class WallTimeInput(forms.DateTimeInput):
    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%dT%H:%M", attrs={"step": "60"})


class WallTimeField(forms.DateTimeField):
    """Reads a wall-clock time as it stands, without deciding which instant it is."""

    widget = WallTimeInput

    def to_python(self, value: Any) -> datetime | None:
        if not value:
            return None
        try:
            return datetime.fromisoformat(str(value)).replace(tzinfo=None, second=0, microsecond=0)
        except ValueError:
            raise forms.ValidationError(_("Give a date and a time.")) from None

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, datetime) and value.tzinfo is not None:
            return timezone.localtime(value).replace(tzinfo=None)
        return value


class BookForm(forms.Form):
    devices = forms.MultipleChoiceField(
        label=gettext_lazy("Devices"), widget=forms.CheckboxSelectMultiple
    )
    start = WallTimeField(label=gettext_lazy("Start"))
    end = WallTimeField(label=gettext_lazy("End"))
    # Asked for by whoever is on the device already: not a moment may pass between now and the start.
    from_now = forms.BooleanField(required=False, widget=forms.HiddenInput)
    purpose = forms.CharField(label=gettext_lazy("Purpose"), required=False, max_length=MAX_PURPOSE)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        bookable = placing.suitable(DeviceFilter()).select_related("host")
        self.fields["devices"].choices = [  # type: ignore[attr-defined]
            (one.uuid, _choice_text(one)) for one in bookable
        ]
        # A time that comes twice needs a second answer; the question appears only then.
        for name in ("start", "end"):
            if which := self._both(name):
                self.fields[f"{name}_offset"] = _offset_field(*which)

    def _both(self, name: str) -> tuple[datetime, list[datetime]] | None:
        """The wall time that was given, and its instants, if there are two."""
        try:
            wall = self.fields[name].to_python(self.data.get(self.add_prefix(name)))
        except forms.ValidationError:
            return None
        found = walltime.instants_of(wall, _zone()) if wall else []
        return (wall, found) if wall and len(found) > 1 else None

    def clean_start(self) -> datetime:
        return self._instant("start")

    def clean_end(self) -> datetime:
        return self._instant("end")

    def _instant(self, name: str) -> datetime:
        wall: datetime = self.cleaned_data[name]
        found = walltime.instants_of(wall, _zone())
        if not found:
            text = _("%(time)s does not exist on that day: the clock skips it.")
            raise forms.ValidationError(text % {"time": f"{wall:%H:%M}"})
        if len(found) == 1:
            return found[0]
        chosen = self.data.get(self.add_prefix(f"{name}_offset"))
        for instant in found:
            if instant.isoformat() == chosen:
                return instant
        text = _("%(time)s comes twice on that day. Choose which one below.")
        raise forms.ValidationError(text % {"time": f"{wall:%H:%M}"})

    def wish(self, *, now: datetime) -> Wish:
        data = self.cleaned_data
        start: datetime = data["start"]
        if data["from_now"] and now - START_STAYS_NOW <= start <= now:
            start = now
        return Wish(
            devices=tuple(data["devices"]),
            start=start,
            end=data["end"],
            purpose=data["purpose"].strip(),
        )


def _choice_text(device: Device) -> str:
    host = device.host.name
    if device.is_simulated:
        host = _("%(host)s (simulated)") % {"host": host}
    return f"{host}: {device.name}"


def _offset_field(wall: datetime, found: list[datetime]) -> forms.ChoiceField:
    choices = [
        (one.isoformat(), f"{wall:%H:%M} {walltime.offset_text(one, _zone())}") for one in found
    ]
    return forms.ChoiceField(
        label=_("Which %(time)s?") % {"time": f"{wall:%H:%M}"},
        choices=choices,
        widget=forms.RadioSelect,
        initial=choices[0][0],
        required=False,
    )


def _zone() -> ZoneInfo:
    return ZoneInfo(timezone.get_current_timezone_name())
