"""What on a host needs a person's hand before the agent can go on: in plain sentences, while it lasts."""

from reservations.core.enforcement import Ladder
from reservations.core.wire import HealthProblem


def problems(ladder: Ladder) -> list[HealthProblem]:
    """Gates that are left alone, devices that somebody cannot be led off, and fire that is held."""
    return [*_gates(ladder), *_stuck(ladder), *_fire(ladder)]


def _gates(ladder: Ladder) -> list[HealthProblem]:
    return [
        HealthProblem(
            code="gate_given_up",
            text="something else on the host keeps changing who may open the device; it is left alone, and "
            f"nobody on it is stopped, since {mark.given_up_at:%Y-%m-%d %H:%M} UTC",
            device=mark.device,
        )
        for mark in ladder.gates
        if mark.given_up_at is not None
    ]


def _stuck(ladder: Ladder) -> list[HealthProblem]:
    return [
        HealthProblem(
            code="stuck",
            text=f"processes cannot be ended: {', '.join(map(str, rung.pids))}"[:400]
            + f"; nobody else is let in since {rung.stuck_at:%Y-%m-%d %H:%M} UTC",
            device=rung.device,
        )
        for rung in ladder.rungs
        if rung.stuck_at is not None
    ]


def _fire(ladder: Ladder) -> list[HealthProblem]:
    since = ladder.held_fire_at
    if since is None:
        return []
    text = (
        "more people would be stopped at once than the kill budget allows, so nobody new is since "
        f"{since:%Y-%m-%d %H:%M} UTC; `berth-host adopt` lets them stay until somebody books, a larger budget "
        "has them stopped"
    )
    return [HealthProblem(code="hold_fire", text=text)]
