"""What each viewer may see of a booking. Masking happens here and nowhere else.

The same rows serve HTML, JSON, WebSockets and iCal. Whoever may not read a booking whole sees that the
slot is taken, until when, and (unless the site hides it) by whom.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from reservations.core.lifecycle import Phase, Role, phase_of, possible, shows_all
from reservations.models import Allocation, Booking, Membership, User


@dataclass(frozen=True)
class Viewer:
    """Somebody who looks, with the teams that widen what they see."""

    user_id: int | None
    is_operator: bool
    teams: frozenset[int] = frozenset()
    managed_teams: frozenset[int] = frozenset()

    @classmethod
    def of(cls, user: User) -> "Viewer":
        memberships = Membership.objects.filter(user=user).values_list("team_id", "is_manager")
        rows = list(memberships)
        return cls(
            user.pk,
            user.is_operator,
            frozenset(team for team, _ in rows),
            frozenset(team for team, manages in rows if manages),
        )

    def role_in(self, booking: Booking) -> Role:
        if self.is_operator:
            return Role.OPERATOR
        if self.user_id == booking.owner_id:
            return Role.OWNER
        if booking.team_id in self.managed_teams:
            return Role.MANAGER
        if booking.team_id in self.teams:
            return Role.READER
        if any(person.pk == self.user_id for person in booking.people.all()):
            return Role.READER
        return Role.STRANGER


# Berth itself and its operators see everything.
EVERYTHING = Viewer(None, is_operator=True)


def current_allocations(booking: Booking) -> list[Allocation]:
    """Those of the devices that the booking has to its end; a replaced card's part ended earlier."""
    return [one for one in booking.allocations.all() if one.end == booking.end]


def instant(moment: datetime) -> str:
    """RFC 3339 in UTC with "Z"."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def person(user: User) -> dict[str, str]:
    return {"username": user.username, "name": user.name}


def owner_shown(owner: User, role: Role) -> dict[str, str] | None:
    """The owner, or None where names are hidden from strangers."""
    return person(owner) if settings.SHOW_OWNERS or shows_all(role) else None


def calendar_row(booking: Booking, *, viewer: Viewer) -> dict[str, Any]:
    """The compact row that calendars draw and events carry."""
    row = {
        "id": booking.pk,
        "revision": booking.revision,
        "state": booking.state,
        "kind": booking.kind,
        "start": instant(booking.start),
        "end": instant(booking.end),
        "devices": [one.device.uuid for one in current_allocations(booking)],
        "owner": person(booking.owner),
        "people": [one.username for one in booking.people.all()],
        "team": booking.team.name if booking.team else None,
        "pinned": booking.pinned,
        "purpose": booking.purpose,
        "opening": opening(booking.held_back_since, booking.held_back_why),
    }
    return row if shows_all(viewer.role_in(booking)) else masked(row)


def masked(row: Mapping[str, Any]) -> dict[str, Any]:
    """A calendar row as those see it who may not read the booking whole."""
    names = {} if settings.SHOW_OWNERS else {"owner": None, "team": None}
    return {**row, "people": [], "purpose": "", "opening": None, **names}


def opening(held_back_since: datetime | None, why: str) -> dict[str, str] | None:
    """Why a device of a running booking is not open for its people yet; None where nothing is known of that."""
    if held_back_since is None:
        return None
    return {"state": "held_back", "reason": why, "since": instant(held_back_since)}


def booking_row(booking: Booking, *, viewer: Viewer, now: datetime) -> dict[str, Any]:
    """The booking as REST answers it; ``can`` lists what this viewer may do with it now."""
    phase = phase_of(state=booking.state, start=booking.start, end=booking.end, now=now)
    row = calendar_row(booking, viewer=viewer)
    return {
        **row,
        "opening": row["opening"] if phase is Phase.ACTIVE else None,
        "phase": phase.value,
        "planned_end": instant(booking.planned_end),
        "devices": [_device(one) for one in current_allocations(booking)],
        "keep_if_free": booking.keep_if_free,
        "early_signal": booking.early_signal,
        "source": booking.source,
        "ended_reason": booking.ended_reason,
        "created": instant(booking.created),
        "can": [verb.value for verb in possible(phase, viewer.role_in(booking))],
    }


def _device(allocation: Allocation) -> dict[str, Any]:
    device = allocation.device
    return {
        "uuid": device.uuid,
        "host": device.host.name,
        "index": device.index,
        "name": device.name,
    }
