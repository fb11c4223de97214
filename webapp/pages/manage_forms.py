"""The forms of the manage page: how a host treats people, and for how long it is held."""

import re
from datetime import timedelta
from typing import Any, Final

import msgspec
from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from reservations.core.wire import HostSettings
from reservations.models import Device, Host
from reservations.services.holds import MAX_REASON

_DEFAULTS: Final = {field.name: field.default for field in msgspec.structs.fields(HostSettings)}
# Beyond these a number is rather a slip of the hand than a wish.
_DAY_S: Final = 86_400
_YEAR_H: Final = 8_784


class _Numbers(forms.Field):
    """User ids, separated by commas or blanks."""

    widget = forms.TextInput

    def to_python(self, value: Any) -> list[int] | None:
        words = re.split(r"[\s,;]+", (value or "").strip())
        if words == [""]:
            return None
        wrong = [word for word in words if not re.fullmatch(r"[0-9]{1,10}", word)]
        wrong += [word for word in words if word not in wrong and int(word) > 2**32 - 2]
        if wrong:
            raise forms.ValidationError(_("Not a user id: %(word)s.") % {"word": wrong[0][:20]})
        return sorted({int(word) for word in words})

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _seconds(label: Any, help_text: Any) -> forms.FloatField:
    return forms.FloatField(
        label=label, help_text=help_text, required=False, min_value=0, max_value=_DAY_S
    )


class SettingsForm(forms.Form):
    """What is left empty is the default. Settings that it does not show stay as they are."""

    grace_s = _seconds(
        gettext_lazy("Grace"),
        gettext_lazy(
            "seconds from the request to end (SIGTERM) to the end by force, when nobody follows"
        ),
    )
    grace_followed_s = _seconds(
        gettext_lazy("Grace when somebody waits"),
        gettext_lazy("seconds, once the next booking has begun; never longer than the grace above"),
    )
    intruder_grace_s = _seconds(
        gettext_lazy("Grace without a booking"),
        gettext_lazy("seconds from the warning to the request to end"),
    )
    adopt_h = forms.FloatField(
        label=gettext_lazy("Adoption"),
        help_text=gettext_lazy(
            "hours for which jobs older than the switch to enforce may stay while nobody else needs their device"
        ),
        required=False,
        min_value=0,
        max_value=_YEAR_H,
    )
    kill_budget = forms.IntegerField(
        label=gettext_lazy("Kill budget"),
        help_text=gettext_lazy(
            "people on devices; if more would be stopped at once without an end of theirs, nobody is and you are told"
        ),
        required=False,
        min_value=0,
        max_value=10_000,
    )
    unbooked_use = forms.ChoiceField(
        label=gettext_lazy("Devices without a booking"),
        required=False,
        choices=[
            ("", gettext_lazy("closed (default)")),
            ("deny", gettext_lazy("closed")),
            ("allow", gettext_lazy("open to everybody until a booking begins")),
        ],
    )
    unattributed_containers = forms.ChoiceField(
        label=gettext_lazy("Containers of no booking"),
        required=False,
        choices=[
            ("", gettext_lazy("reported (default)")),
            ("report", gettext_lazy("reported")),
            ("stop", gettext_lazy("stopped once somebody else's booking begins")),
        ],
    )
    always_open_uids = _Numbers(
        label=gettext_lazy("Always let in"),
        help_text=gettext_lazy(
            "user ids of services that may open every device, such as exporters"
        ),
        required=False,
    )
    exempt_uids = _Numbers(
        label=gettext_lazy("Never stopped"),
        help_text=gettext_lazy("user ids whose processes are never stopped and never in the way"),
        required=False,
    )
    forced_displays = forms.MultipleChoiceField(
        label=gettext_lazy("Gated although they drive a display"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, host: Host, data: Any = None) -> None:
        super().__init__(data, initial=host.settings)
        self._host = host
        found = Device.objects.filter(host=host).exclude(state=Device.State.RETIRED)
        # One that is named and no longer there must not vanish from the settings unseen.
        named = host.settings.get("forced_displays", ())
        known = {one.uuid: one.name for one in found}
        self.fields["forced_displays"].choices = [  # type: ignore[attr-defined]
            *known.items(),
            *((uuid, uuid) for uuid in named if uuid not in known),
        ]
        for name, field in self.fields.items():
            default = _DEFAULTS.get(name)
            if isinstance(default, int | float):
                field.widget.attrs["placeholder"] = _("default %(value)g") % {"value": default}

    def overrides(self) -> dict[str, Any]:
        """All settings of the host that differ from the defaults."""
        kept = {key: value for key, value in self._host.settings.items() if key not in self.fields}
        chosen = {
            key: value for key, value in self.cleaned_data.items() if value not in (None, "", [])
        }
        return {**kept, **chosen}


_MINUTES: Final = [
    ("30", gettext_lazy("30 minutes")),
    ("60", gettext_lazy("1 hour")),
    ("240", gettext_lazy("4 hours")),
    ("1440", gettext_lazy("1 day")),
    ("4320", gettext_lazy("3 days")),
    ("10080", gettext_lazy("7 days")),
]


class HoldForm(forms.Form):
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=MAX_REASON,
        help_text=gettext_lazy("everybody reads it"),
    )
    minutes = forms.ChoiceField(label=gettext_lazy("For"), choices=_MINUTES, initial="60")

    @property
    def duration(self) -> timedelta:
        return timedelta(minutes=int(self.cleaned_data["minutes"]))
