"""Ten thousand random histories of a host, on each of which nobody may be signalled who is protected.

Plain random choices, no search: quantity where the machine beside it has cunning. A history that fails is
repeated by its number: ``History(number).run()``.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import msgspec

from reservations.core.enforcement import GateState, Keeper, Ladder, PlanState
from reservations.core.reconcile import next_edge
from reservations.core.wire import HostSettings
from tests.core.oracle import Oracle
from tests.core.stage import ALICE, BOB, CAROL, Process, Stage, at, grant

HISTORIES = 10_000
STEPS = 4
DEVICES = ("GPU-a", "GPU-b")
PEOPLE = (ALICE, BOB, CAROL)
EXEMPT, EXPORTER = 61098, 61099
SETTINGS = HostSettings(
    mode="enforce",
    managed=DEVICES,
    intruder_grace_s=10,
    grace_s=5,
    grace_followed_s=2,
    exempt_uids=(EXEMPT,),
    always_open_uids=(EXPORTER,),
)
BOX = "3f" * 32


def service_of(uid: int) -> Keeper:
    """A keeper is named only where all that it keeps is one person's."""
    return Keeper(engine="systemd", name=f"of-{uid}.service")


# Whom nobody may ever signal, of every kind that a scan tells apart.
PROTECTED: tuple[tuple[int, dict[str, object]], ...] = (
    (0, {"protected": "root or a system account"}),
    (ALICE, {"protected": "a Slurm job: Slurm ends it"}),
    (BOB, {"protected": "the agent's own tree"}),
    (EXEMPT, {}),
    (EXPORTER, {}),
    (EXEMPT, {"keeper": service_of(EXEMPT)}),
    (0, {"container": BOX}),
    (CAROL, {"container": BOX, "keeper": Keeper(engine="docker", name=BOX)}),
    (0, {"container": BOX, "booking": 999_999}),
    (CAROL, {"protected": "a container whose booking is not known yet", "container": "c" * 64}),
)


@dataclass
class History:
    """One host's, by number. ``signals`` counts what was sent to others."""

    number: int
    signals: int = 0
    chance: random.Random = field(init=False)
    stage: Stage = field(init=False)
    protected: list[Process] = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.number)
        self.now = at(0)
        since = self.chance.choice((None, at(hours=-99)))
        self.stage = Stage(settings=SETTINGS, ladder=Ladder(enforcing_since=since))
        self.protected = [
            self.stage.run(uid, at(hours=-5), device=self.chance.choice(DEVICES), **traits)
            for uid, traits in self.chance.sample(PROTECTED, 4)
        ]

    def run(self) -> int:
        events = self.chance.choices(EVENTS, WEIGHTS, k=STEPS)
        for event in events:
            event(self)
            self.wait()
            self.look()
        return self.signals

    def look(self) -> None:
        for _ in range(3):
            decision = self.stage.decide(self.now)
            self.signals += Oracle(self.stage, self.now).check_signals(decision)
            self.stage.take(decision, self.now)
            if not decision.look_again:
                break
        for process in self.protected:
            assert process in self.stage.processes, f"ended: {process}"

    def wait(self) -> None:
        """To an edge, just before or behind it, or anywhere; now and then the clock is set back."""
        edge = next_edge(
            self.stage.grants, ladder=self.stage.ladder, settings=self.stage.settings, now=self.now
        )
        step_s = self.chance.choice((0.05, 1, 5, 11, 30, 90, 600))
        later = self.now + timedelta(seconds=step_s)
        if edge is not None and self.chance.random() < 0.6:
            later = edge + timedelta(seconds=self.chance.choice((0, 0, 0, -0.01, 0.01, 1)))
        if self.chance.random() < 0.03:
            later = self.now - timedelta(seconds=1)
        self.now = later

    def book(self) -> None:
        start = self.now + timedelta(seconds=self.chance.choice((-30, 0, 0, 5, 60, 900)))
        length = timedelta(seconds=self.chance.choice((20, 60, 700, 3600)))
        device = self.chance.choice(DEVICES)
        booking = len(self.stage.grants) + 1
        early = self.chance.random() < 0.2
        for uid in self.chance.sample(PEOPLE, self.chance.choice((1, 1, 2))):
            self.stage.grants.append(
                grant(
                    uid, start, start + length, booking=booking, device=device, early_signal=early
                )
            )

    def change_plan(self) -> None:
        """A grant ends sooner or later than it did, or is gone."""
        if not self.stage.grants:
            return
        one = self.stage.grants.pop(self.chance.randrange(len(self.stage.grants)))
        end = self.chance.choice((self.now, one.end + timedelta(seconds=60), None))
        if end is not None and end > one.start:
            self.stage.grants.append(msgspec.structs.replace(one, end=end))

    def run_job(self) -> None:
        uid = self.chance.choice(PEOPLE)
        keeper = service_of(uid) if self.chance.random() < 0.2 else None
        self._run(uid, keeper=keeper)

    def run_container(self) -> None:
        """Of some booking, and as anybody."""
        if self.stage.grants:
            booking = self.chance.choice(self.stage.grants).booking
            name = f"{booking:064}"
            keeper = self.chance.choice((None, Keeper(engine="docker", name=name)))
            uid = self.chance.choice((0, *PEOPLE))
            self._run(uid, container=name, booking=booking, keeper=keeper)

    def _run(self, uid: int, **traits: object) -> None:
        self.stage.run(
            uid,
            self.now - timedelta(seconds=self.chance.choice((0, 0.05, 1, 3600))),
            device=self.chance.choice(DEVICES),
            obeys=self.chance.random() < 0.6,
            mortal=self.chance.random() < 0.9,
            uses=self.chance.random() < 0.9,
            **traits,
        )

    def leave(self) -> None:
        others = [one for one in self.stage.processes if one not in self.protected]
        if others:
            self.stage.processes.remove(self.chance.choice(others))

    def lose_readings(self) -> None:
        self.stage.unreadable = self.chance.random() < 0.2
        self.stage.unreadable_devices = {one for one in DEVICES if self.chance.random() < 0.3}

    def drift(self) -> None:
        device = self.chance.choice(DEVICES)
        for _ in range(self.chance.choice((1, 1, 7))):
            uids = frozenset(self.chance.sample(PEOPLE, self.chance.randrange(3)))
            sound, open_to_all = self.chance.random() < 0.5, self.chance.random() < 0.3
            self.stage.gates[device] = GateState(uids=uids, group_open=open_to_all, sound=sound)
            self.look()

    def change_settings(self) -> None:
        self.stage.settings = msgspec.structs.replace(
            SETTINGS,
            mode=self.chance.choice(("observe", "warn", "enforce", "enforce", "enforce")),
            unbooked_use=self.chance.choice(("deny", "allow")),
            managed=self.chance.choice((DEVICES, DEVICES, DEVICES[:1])),
            kill_budget=self.chance.choice((0, 1, 8)),
        )

    def change_network(self) -> None:
        old = self.now - timedelta(seconds=self.chance.choice((0, 4, 60, 900)))
        until = self.chance.choice((None, None, self.now + timedelta(seconds=30)))
        self.stage.plan = self.chance.choice(
            (
                None,
                None,
                PlanState(as_of=old, complete_until=until),
                PlanState(as_of=old, may_stop=False),
                PlanState(as_of=None, may_stop=False),
            )
        )

    def restart(self) -> None:
        """Killed after acting and before the ladder was written down: an old one is read."""
        stored = msgspec.json.encode(self.stage.ladder)
        self.wait()
        self.look()
        self.stage.ladder = msgspec.json.decode(stored, type=Ladder)

    def reboot(self) -> None:
        self.stage.processes = list(self.protected)
        self.stage.ladder = self.stage.ladder.after_reboot()
        self.stage.plan = PlanState(as_of=self.now, may_stop=False)

    def managers(self) -> None:
        self.stage.managers_work = not self.stage.managers_work


EVENTS: tuple[Callable[[History], None], ...] = (
    History.book,
    History.run_job,
    History.run_container,
    History.change_plan,
    History.leave,
    History.lose_readings,
    History.drift,
    History.change_settings,
    History.change_network,
    History.restart,
    History.reboot,
    History.managers,
)
WEIGHTS = (20, 30, 6, 8, 4, 5, 4, 5, 6, 4, 1, 2)


def test_nobody_protected_is_signalled_in_ten_thousand_histories() -> None:
    first = random.SystemRandom().randrange(10**9)
    signals = 0
    for number in range(first, first + HISTORIES):
        try:
            signals += History(number).run()
        except AssertionError as wrong:
            raise AssertionError(f"History({number}).run(): {wrong}") from wrong
    # Histories in which nothing happens would prove nothing.
    assert signals > HISTORIES / 5
