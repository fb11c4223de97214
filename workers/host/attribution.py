"""Whose a process is, in what it runs, and what would start it again.

Engines, systemd and name services are asked in threads of their own: a look takes what is known by
now. Until it is known whose a container is, it is stopped by nobody; what is not known to restart is
stopped by its processes.
"""

import logging
from pathlib import Path

from reservations.core.enforcement import Keeper
from reservations.core.wire import HealthProblem
from workers.host.asker import Asker
from workers.host.containers import Claim, Container, Engines, container_of
from workers.host.keepers import Kept, Unit, ask_systemd, unit_in
from workers.host.processes import PROC, Facts
from workers.host.protection import Place, is_person, person_of
from workers.host.subordinates import Subordinates

logger = logging.getLogger(__name__)

# Labels never change; that a container is still known is asked anew now and then.
CLAIM_HOLDS_S = 3600.0
# Who is in a service's cgroup, and what it does at its end, may change.
KEPT_HOLDS_S = 60.0


class Attribution:
    """For one thread, which is never held up."""

    def __init__(self, proc: Path = PROC, subordinates: Subordinates | None = None) -> None:
        self._subordinates = subordinates or Subordinates()
        self._containers: Asker[Container, Claim] = Asker(
            Engines().ask, name="containers", keep_s=CLAIM_HOLDS_S
        )
        self._units: Asker[tuple[Unit, int], Kept] = Asker(
            lambda key: ask_systemd(*key, proc=proc), name="services", keep_s=KEPT_HOLDS_S
        )
        self._seen: set[Container | tuple[Unit, int]] = set()
        self._said: frozenset[str] = frozenset()

    def place(self, facts: Facts) -> Place:
        """A rootless container is its person's, like any other process of theirs."""
        person = person_of(facts, subordinate_owner=self._subordinates.owner_of)
        container = container_of(facts.cgroups)
        if container is None or container.rootless:
            return Place(person)
        self._seen.add(container)
        return Place(person, container, self._containers.answer(container))

    def keeper(self, facts: Facts, place: Place) -> Keeper | None:
        """What starts the process again, as far as it is known and may be stopped."""
        if place.container is not None:
            engine = place.claim.engine if place.claim else None
            return Keeper(engine=engine, name=place.container.id) if engine else None
        unit = unit_in(facts.cgroups)
        if unit is None or place.person is None or not is_person(place.person):
            return None
        self._seen.add((unit, place.person))
        kept = self._units.answer((unit, place.person))
        return kept.keeper if kept else None

    def settle(self) -> None:
        """The look is over: forget about all that was not in it, and log what could not be asked."""
        self._containers.keep_only(one for one in self._seen if isinstance(one, Container))
        self._units.keep_only(one for one in self._seen if isinstance(one, tuple))
        self._seen.clear()
        unsaid = self._failures()
        for text in sorted(unsaid - self._said):
            logger.warning("%s", text)
        self._said = unsaid

    def problems(self) -> list[HealthProblem]:
        return [HealthProblem(code="not_attributed", text=text) for text in sorted(self._said)]

    def _failures(self) -> frozenset[str]:
        return self._containers.failures() | self._units.failures()
