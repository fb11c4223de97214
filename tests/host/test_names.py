"""Names are looked up side by side, no more than a few at once, and one that hangs holds up no other."""

import threading

import pytest

from workers.host import names
from workers.host.names import Names


class Directory:
    """Everybody's uid is the number in their name. It notes how many asked at once."""

    def __init__(self, *, hanging: str = "") -> None:
        self.hanging = hanging
        self.let_go = threading.Event()
        self.most = 0
        self._asking = 0
        self._lock = threading.Lock()

    def uid_of(self, unix_name: str) -> int | None:
        with self._lock:
            self._asking += 1
            self.most = max(self.most, self._asking)
        if self.hanging and unix_name.startswith(self.hanging):
            self.let_go.wait(30)
        with self._lock:
            self._asking -= 1
        return int(unix_name[1:])

    def name_of(self, uid: int) -> str | None:
        return f"u{uid}"


@pytest.fixture
def hanging():
    directory = Directory(hanging="x")
    yield directory
    directory.let_go.set()


PEOPLE = [f"u{number}" for number in range(100)]


def test_more_people_than_are_looked_up_at_once_are_all_named_in_one_go():
    directory = Directory()

    found = Names(directory).uids_of(PEOPLE, wait_s=20)

    assert found == {name: int(name[1:]) for name in PEOPLE}
    assert directory.most <= names.MAX_LOOKUPS


def test_names_that_hang_hold_up_none_that_come_after_them(hanging):
    hung = [f"x{number}" for number in range(names.MAX_LOOKUPS - 1)]

    found = Names(hanging).uids_of([*hung, *PEOPLE], wait_s=0.5)

    assert found == {name: int(name[1:]) for name in PEOPLE}


def test_a_name_that_took_too_long_is_there_when_it_is_asked_for_again(hanging):
    asked = Names(hanging)
    assert asked.uids_of(["x1"], wait_s=0.01) == {}

    hanging.let_go.set()

    assert asked.uids_of(["x1"], wait_s=20) == {"x1": 1}


def test_answers_that_nobody_came_back_for_do_not_keep_others_from_asking(hanging):
    asked = Names(hanging)
    asked.uids_of([f"x{number}" for number in range(names.MAX_LOOKUPS)], wait_s=0.01)
    assert asked.uids_of(["u7"], wait_s=0.01) == {}

    hanging.let_go.set()

    assert asked.uids_of(["u7"], wait_s=20) == {"u7": 7}
