"""The host's Celery worker: it only carries nudges to the agent, which is a thread beside it.

The agent starts before the broker is asked for and goes on without one. Remote control is off; the
one task takes no argument, so a forged message is worth one extra look.
"""

import os

from celery import Celery, bootsteps

from reservations.core import wire
from workers.host import config
from workers.host.agent import Agent

# Celery would import Django's settings where this is set; a host has none.
os.environ.pop("DJANGO_SETTINGS_MODULE", None)

app = Celery("berth-host")
app.conf.update(
    task_ignore_result=True,
    task_store_errors_even_if_ignored=False,
    accept_content=["json"],
    broker_connection_retry_on_startup=True,
    # None: for ever. The agent needs no broker, so there is no reason to give up.
    broker_connection_max_retries=None,
    broker_transport_options={
        "socket_connect_timeout": 5,
        "socket_timeout": 30,
        "socket_keepalive": True,
        "health_check_interval": 10,
    },
    worker_enable_remote_control=False,
    worker_hijack_root_logger=False,
    worker_send_task_events=False,
)

# Set by the one bootstep of this process; the task has no other way to find it.
_running: list[Agent] = []
# Why an agent did not start. Celery logs such an error and then ends with status 0.
_not_started: list[Exception] = []


class AgentStep(bootsteps.StartStopStep):
    """Runs the agent for as long as the worker runs."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: object, **options: object) -> None:
        self.agent = Agent(config.read(os.environ))

    def start(self, worker: object) -> None:
        try:
            self.agent.start()
        except Exception as error:
            _not_started.append(error)
            raise
        _running.append(self.agent)

    def stop(self, worker: object) -> None:
        _running.clear()
        self.agent.stop()

    def terminate(self, worker: object) -> None:
        self.stop(worker)


app.steps["worker"].add(AgentStep)


@app.task(name=wire.NUDGE)
def nudge() -> None:
    for agent in _running:
        agent.nudge()


def run(configuration: config.Config) -> None:
    """Works until it is told to stop.

    Raises:
        AlreadyRunning: another agent enforces this host.
    """
    queue = wire.host_queue(configuration.host)
    app.conf.update(broker_url=configuration.redis_url, task_default_queue=queue)
    prefix = wire.host_key_prefix(configuration.host)
    app.conf.broker_transport_options["global_keyprefix"] = prefix
    app.worker_main(
        [
            "worker", "--queues", queue, "--hostname", f"host-{configuration.host}@%h",
            "--pool", "threads", "--concurrency", "1", "--loglevel", "INFO",
            "--without-gossip", "--without-mingle", "--without-heartbeat",
        ]
    )  # fmt: skip
    if _not_started:
        raise _not_started[0]
