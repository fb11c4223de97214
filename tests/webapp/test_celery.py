"""Beat's table: every entry is a task that exists, without arguments, and expires before the next."""

import pytest

from reservations import clock
from reservations.models import Pulse
from reservations.services import pulses
from webapp.celery import PulsingScheduler, app


@pytest.fixture(autouse=True)
def _tasks():
    app.loader.import_default_modules()


@pytest.mark.parametrize("name", app.conf.beat_schedule)
def test_every_entry_is_a_task_that_leaves_no_backlog(name):
    entry = app.conf.beat_schedule[name]
    assert entry["task"] in app.tasks
    assert "args" not in entry
    assert entry["options"] == {"expires": entry["schedule"], "queue": "control"}


def test_every_control_task_is_in_the_table():
    ours = {name for name in app.tasks if name.startswith("berth.control.")}
    assert ours == {entry["task"] for entry in app.conf.beat_schedule.values()}


@pytest.mark.django_db
@pytest.mark.parametrize("task", sorted({e["task"] for e in app.conf.beat_schedule.values()}))
def test_every_task_runs_on_an_empty_database(task):
    app.tasks[task].apply(throw=True)


@pytest.mark.django_db(transaction=True)
def test_beat_shows_that_it_lives_although_its_broker_does_not():
    scheduler = PulsingScheduler(app, lazy=True, Producer=None)
    scheduler.data.clear()
    scheduler.tick()
    assert clock.now() - Pulse.objects.get(name="beat").at < pulses.FRESH


def test_results_and_remote_control_are_off():
    assert app.conf.task_ignore_result
    assert not app.conf.worker_enable_remote_control
    assert app.conf.broker_connection_max_retries is None
