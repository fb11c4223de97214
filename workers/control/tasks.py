"""What beat asks the control worker to do. Doors only: each opens on one service.

Tasks take no argument and look at what is true now, so a message that comes twice or never, or that
somebody has forged, costs one look.
"""

from celery import shared_task

from reservations import clock
from reservations.notify.browser import BrowserChannel
from reservations.services import (
    ending_notices,
    keeping,
    milestones,
    notices,
    pulses,
    rebinding,
    usage,
    writes,
)


@shared_task(name="berth.control.pulse")
def pulse() -> None:
    pulses.beat(pulses.CONTROL, now=clock.now())


@shared_task(name="berth.control.pass_milestones")
def pass_milestones() -> None:
    milestones.pass_milestones(now=clock.now())


@shared_task(name="berth.control.keep_free_bookings")
def keep_free_bookings() -> None:
    keeping.keep_free_bookings(now=clock.now())


@shared_task(name="berth.control.write_ending_notices")
def write_ending_notices() -> None:
    ending_notices.write_ending_notices(now=clock.now())


@shared_task(name="berth.control.deliver_notices")
def deliver_notices() -> None:
    notices.deliver(BrowserChannel(), now=clock.now())


@shared_task(name="berth.control.flag_silent_hosts")
def flag_silent_hosts() -> None:
    usage.flag_silent_hosts(now=clock.now())


@shared_task(name="berth.control.rebind_lost_devices")
def rebind_lost_devices() -> None:
    rebinding.rebind_lost_devices(now=clock.now())


@shared_task(name="berth.control.forget_answers")
def forget_answers() -> None:
    writes.forget_answers(now=clock.now())
