"""``berth-host``: run, status, doctor, and root's own word; also ``python -m workers.host``."""

import argparse
import logging
import os
import signal
import sys
from pathlib import Path

import msgspec

from workers.host import clock, config, room, status
from workers.host.agent import Agent
from workers.host.commands import break_glass, everybody
from workers.host.commands.words import WrongCall
from workers.host.doctor import reader, report

logger = logging.getLogger(__name__)


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0, 1 for a problem, 2 for a wrong call or configuration."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except (config.ConfigError, WrongCall) as error:
        sys.stderr.write(f"berth-host: {error}\n")
        return 2
    except status.AlreadyRunning as error:
        sys.stderr.write(f"berth-host: {error}\n")
        return 1
    return code


def run(options: argparse.Namespace) -> int:
    configuration = config.read(os.environ)
    room.take_all_there_is()
    logging.basicConfig(
        level=os.environ.get("LOG_LEVEL", "INFO"),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    if configuration.redis_url:
        # Only here: a host without a broker does without Celery.
        from workers.host import app

        app.run(configuration)
    else:
        _run_alone(configuration)
    return 0


def _run_alone(configuration: config.Config) -> None:
    signals = {signal.SIGTERM, signal.SIGINT}
    # Before any thread starts: they inherit the mask, and only `sigwait` hears these.
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    agent = Agent(configuration)
    agent.start()
    logger.info("no broker: the plan is asked for at every heartbeat")
    signal.sigwait(signals)
    agent.stop()


def show(options: argparse.Namespace) -> int:
    """1 when the agent does not run, or tells of a problem."""
    environ = config.environment(os.environ)
    folder = Path(options.state_dir or environ.get("BERTH_STATE_DIR") or config.STATE_DIR)
    found = status.read(folder)
    running = status.is_running(folder)
    if found is None:
        sys.stderr.write(f"berth-host: no agent has worked in {folder} yet\n")
        return 1
    if options.json:
        content = {"running": running, **msgspec.to_builtins(found)}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(content)).decode() + "\n")
    else:
        text = status.in_words(found, running=running, now=clock.wall())
        sys.stdout.write(text + "\n")
    return 0 if running and not found.health else 1


def examine(options: argparse.Namespace) -> int:
    """0, 1 or 2 as `report` says."""
    findings = report.examine(reader.read(os.environ))
    words = report.in_json(findings) if options.json else report.in_words(findings)
    sys.stdout.write(words + "\n")
    return report.exit_status(findings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="berth-host", description="Berth on a GPU host.")
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run", help="enforce the plan of this host until told to stop")
    one.set_defaults(run=run)
    one = commands.add_parser("status", help="what the agent sees and does")
    one.add_argument("--json", action="store_true")
    one.add_argument("--state-dir", help="[$BERTH_STATE_DIR]")
    one.set_defaults(run=show)
    one = commands.add_parser("doctor", help="whether this host can enforce, and what to put right")
    one.add_argument("--json", action="store_true")
    one.set_defaults(run=examine)
    break_glass.add_to(commands)
    everybody.add_to(commands)
    return parser
