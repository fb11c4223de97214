"""The Celery application of the control plane: its worker, and the table of what beat asks for when.

    celery -A webapp.celery worker -Q control --without-gossip --without-mingle
    celery -A webapp.celery beat

Every entry is safe to run twice at once and expires before the next: an outage leaves no backlog.
"""

import contextlib
import os
from typing import Any

import django
from celery import Celery
from celery.beat import Scheduler
from django.db import DatabaseError, close_old_connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
django.setup()

from django.conf import settings  # noqa: E402

from reservations import clock  # noqa: E402
from reservations.services import pulses  # noqa: E402

PULSE_EVERY_S = 5.0


def _every(seconds: float, task: str) -> dict[str, Any]:
    return {
        "task": f"berth.control.{task}",
        "schedule": seconds,
        "options": {"expires": seconds, "queue": "control"},
    }


class PulsingScheduler(Scheduler):
    """Keeps its times in memory (every entry is level-triggered) and shows that beat lives."""

    _pulse_due = 0.0

    def tick(self, *args: Any, **kwargs: Any) -> float:
        now = clock.now()
        if now.timestamp() >= self._pulse_due:
            self._pulse_due = now.timestamp() + PULSE_EVERY_S
            with contextlib.suppress(DatabaseError):
                pulses.beat(pulses.BEAT, now=now)
            close_old_connections()
        return min(super().tick(*args, **kwargs), PULSE_EVERY_S)


app = Celery("berth", broker=settings.REDIS_URL)
app.conf.update(
    imports=["workers.control.tasks"],
    task_default_queue="control",
    task_ignore_result=True,
    task_acks_late=False,
    worker_pool="threads",
    worker_concurrency=4,
    worker_prefetch_multiplier=1,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    # Logging is Django's.
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={
        "socket_timeout": 5,
        "socket_connect_timeout": 2,
        "socket_keepalive": True,
        "health_check_interval": 5,
        "visibility_timeout": 3600,
    },
    beat_scheduler="webapp.celery:PulsingScheduler",
    beat_max_loop_interval=PULSE_EVERY_S,
    beat_schedule={
        "pulse": _every(PULSE_EVERY_S, "pulse"),
        "milestones": _every(5, "pass_milestones"),
        "ending notices": _every(10, "write_ending_notices"),
        "kept bookings": _every(15, "keep_free_bookings"),
        "notices": _every(2, "deliver_notices"),
        "silent hosts": _every(10, "flag_silent_hosts"),
        "lost devices": _every(60, "rebind_lost_devices"),
        "idempotency answers": _every(3600, "forget_answers"),
    },
)
