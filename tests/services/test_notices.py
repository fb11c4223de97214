"""The outbox: a fact reaches a person once, and what fails is tried again."""

from typing import ClassVar

import pytest

from reservations.models import Notice
from reservations.notify.base import Message
from reservations.services import notices
from tests import build
from tests.build import NOON
from tests.hosts import HOUR, MINUTE

pytestmark = pytest.mark.django_db


class Mailbox:
    """A channel that keeps what it gets; ``broken`` makes it fail."""

    name: ClassVar[str] = "mailbox"

    def __init__(self) -> None:
        self.got: list[Message] = []
        self.broken = False

    def send(self, message: Message) -> None:
        if self.broken:
            raise ConnectionError
        self.got.append(message)


@pytest.fixture
def alice():
    return build.user("alice", email="alice@example.org")


def tell(*people, key="fact", text="Something happened.", now=NOON):
    notices.tell([person.pk for person in people], "kind", text, key=key, now=now)


def test_a_fact_is_written_once_for_each_person(alice):
    bob = build.user()
    for _ in range(2):
        tell(alice, bob, alice)
    assert Notice.objects.count() == 2


def test_each_person_may_get_words_of_their_own(alice):
    bob = build.user("bob")
    tell(alice, bob, text=lambda user: f"Hello {user.username}.")
    assert set(Notice.objects.values_list("text", flat=True)) == {"Hello alice.", "Hello bob."}


def test_operators_are_told_and_nobody_else(alice):
    admin = build.operator()
    build.operator(is_active=False)
    notices.tell_operators("kind", "Look.", key="fact", now=NOON)
    assert Notice.objects.get().user == admin


def test_a_notice_is_delivered_once(alice):
    mailbox = Mailbox()
    tell(alice)
    assert [notices.deliver(mailbox, now=NOON + MINUTE) for _ in range(2)] == [1, 0]
    (message,) = mailbox.got
    assert (message.person, message.email, message.text) == (
        alice.pk,
        "alice@example.org",
        "Something happened.",
    )
    assert Notice.objects.get().delivered_at == NOON + MINUTE


def test_a_failing_channel_keeps_the_notice_for_later(alice):
    mailbox = Mailbox()
    mailbox.broken = True
    tell(alice)
    assert notices.deliver(mailbox, now=NOON) == 0
    mailbox.broken = False
    assert notices.deliver(mailbox, now=NOON + MINUTE / 2) == 0
    assert notices.deliver(mailbox, now=NOON + MINUTE) == 1


def test_one_bad_address_does_not_hold_up_the_others(alice):
    class Picky(Mailbox):
        def send(self, message: Message) -> None:
            self.broken = message.person == alice.pk
            super().send(message)

    tell(alice, build.user())
    assert notices.deliver(Picky(), now=NOON) == 1


def test_of_two_workers_one_delivers(alice):
    class Slow(Mailbox):
        def send(self, message: Message) -> None:
            assert notices.deliver(other, now=NOON) == 0
            super().send(message)

    other = Mailbox()
    tell(alice)
    assert notices.deliver(Slow(), now=NOON) == 1
    assert other.got == []


def test_what_is_a_day_old_is_no_longer_delivered(alice):
    mailbox = Mailbox()
    tell(alice)
    assert notices.deliver(mailbox, now=NOON + 24 * HOUR) == 0
