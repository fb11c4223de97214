"""Root's own word on a host: grant, hold, resume, yield, adopt, release-host. Each works offline.

Exit status: 0 it is in force, 1 it is written down and not in force yet (the text says why), 2 it
could not be done as it was typed.
"""

import argparse
import os
import sys
from datetime import timedelta
from operator import methodcaller
from typing import Any

import msgspec

from reservations.core.enforcement import HostGrant
from reservations.core.wire import Hold
from workers.host.by_hand import ByHand, held_in_words
from workers.host.commands import modprobe
from workers.host.commands.desk import Desk
from workers.host.commands.words import WrongCall, called, duration, find_device, instant
from workers.host.plain_text import plain
from workers.host.status import Status

_LATE = "The agent has not obeyed yet; see its log, and `berth-host status`."
_NO_AGENT = "No agent runs: it counts from the agent's next start on (systemctl start berth-host)."


def grant(options: argparse.Namespace) -> int:
    desk = _desk(options)
    device = find_device(desk.devices(), options.device)
    name, uid = desk.person(options.user)
    start = desk.now()
    end = start + options.for_
    given = HostGrant(
        booking=None, device=device.uuid, uid=uid, unix_name=name, start=start, end=end
    )
    text = f"until {end:%Y-%m-%d %H:%M} UTC" if options.for_ else "taken away again"
    report = desk.report("granted_by_hand", text, device=device.uuid, unix_name=name, uid=uid)
    said = desk.say(lambda said: said.with_grant(given), report)
    if not options.for_:
        _print(f"{name} ({uid}) has {called(device)} by hand no more.")
        return _settled(desk, said)
    _print(
        f"{name} ({uid}) has {called(device)} until {instant(end)}.",
        f"To end it earlier: berth-host grant {options.user} {options.device} --for 0",
    )
    if not desk.running:
        desk.act_alone()
        _print("No agent runs: nothing closes it at the end until one does.")
    return _told_of_grant(desk.obeyed(said), given)


def _told_of_grant(seen: Status | None, given: HostGrant) -> int:
    if seen is None:
        _print(_LATE)
        return 1
    if seen.released_at or seen.hold:
        what = "released" if seen.released_at else "held"
        _print(f"The host is {what}: it counts once you have typed `berth-host resume`.")
        return 1
    if given.device in seen.yielded:
        _print(f"The device is yielded: it counts after `berth-host yield --back {given.device}`.")
        return 1
    device = next((one for one in seen.devices if one.uuid == given.device), None)
    if device is None:
        _print("The agent does not see this device now.")
        return 1
    if device.group_open:
        _print("The device is open to the access group, so to them as well.")
        return 0
    if given.uid in device.open_to:
        _print("The device is open to them now.")
        return 0
    if any(problem.code == "plan_incomplete" for problem in seen.health):
        _print("The stored plan is used up: no gate changes until the server was reached.")
        return 1
    others = ", ".join(device.holders or ()) or "unknown"
    _print(f"It opens to them once nobody without a right is on it. On it, as pid (uid): {others}")
    return 1


def hold(options: argparse.Namespace) -> int:
    desk = _desk(options)
    if options.for_ == timedelta(0):
        raise WrongCall("a hold of no time at all; to end one: berth-host resume")
    until = desk.now() + options.for_ if options.for_ else None
    wanted = Hold(reason=plain(options.reason, limit=200), until=until)
    report = desk.report("held", held_in_words(wanted))
    said = desk.say(lambda said: msgspec.structs.replace(said, hold=wanted), report)
    _print(
        f"This host is held {f'until {instant(until)}' if until else 'until you resume it'}: "
        "no gate is changed and nobody is stopped, whatever begins or ends.",
        "To go on: berth-host resume",
    )
    return _settled(desk, said)


def resume(options: argparse.Namespace) -> int:
    desk = _desk(options)
    if desk.begin_anew():
        _print(
            "What was said by hand could not be read; it was set aside, and is to be said again."
        )
    before = desk.read()
    kind, what = ("taken_back", "The agent looks after this host again.")
    if before.released_at is None:
        kind, what = ("resumed", "This host is held by hand no more.")
    said = desk.say(
        lambda said: msgspec.structs.replace(said, hold=None, released_at=None),
        desk.report(kind),  # type: ignore[arg-type]
    )
    _print(what)
    code = _settled(desk, said)
    seen = desk.obeyed(said) if desk.running else None
    if seen and seen.hold:
        _print(f"An operator of the server holds it still: {held_in_words(seen.hold)}.")
        _print("It ends by itself, or on the server's manage page: /manage/")
        return 1
    return code


def yield_(options: argparse.Namespace) -> int:
    desk = _desk(options)
    devices = [find_device(desk.devices(), wanted) for wanted in options.device]
    if options.back:
        return _take_back(desk, {one.uuid for one in devices})
    if not devices:
        raise WrongCall("which device? Its index, or how its UUID begins")
    said = ByHand()
    for one in devices:
        report = desk.report("yielded", device=one.uuid)
        said = desk.say(methodcaller("with_yielded", one.uuid), report)
    _print(
        "The agent leaves these alone, as they are:",
        *(f"  {called(one)}" for one in devices),
        "Meanwhile it has no device of this host open, so it stops nobody whom only the driver names.",
        f"Once you are done: berth-host yield --back {' '.join(one.uuid for one in devices)}",
    )
    return _settled(desk, said)


def _take_back(desk: Desk, uuids: set[str]) -> int:
    """All of them where none is named: after a repartition the old ones may have no name any more."""
    said = desk.read()
    for uuid in sorted(uuids or set(said.yielded)):
        report = desk.report("taken_back", device=uuid)
        said = desk.say(methodcaller("without_yielded", uuid), report)
    left = ", ".join(said.yielded)
    _print(f"Still left alone: {left}" if left else "The agent looks after every device again.")
    return _settled(desk, said)


def adopt(options: argparse.Namespace) -> int:
    desk = _desk(options)
    now = desk.now()
    said = desk.say(
        lambda said: msgspec.structs.replace(said, adopted_at=now),
        desk.report("adopted", "whatever runs now may stay until somebody books its device"),
    )
    _print(
        f"Whatever runs since before {instant(now)} may stay on its device, until somebody's booking",
        "begins there or the host's adopt_h (72 hours by default) are over.",
    )
    code = _settled(desk, said)
    seen = desk.obeyed(said) if desk.running else None
    if seen and seen.mode != "enforce":
        _print(f"The host is in mode {seen.mode}, in which nobody is stopped anyway.")
    return code


def release_host(options: argparse.Namespace) -> int:
    desk = _desk(options)
    now = desk.now()
    said = desk.say(
        lambda said: msgspec.structs.replace(said, released_at=now, hold=None),
        desk.report("released_host", "every node is put back as it was"),
    )
    if not desk.running:
        desk.act_alone()
    seen = desk.obeyed(said)
    left = [mark.device for mark in seen.ladder.gates] if seen else []
    if seen is None or left:
        _print(_LATE, *(f"Still gated: {device}" for device in left))
        return 1
    _print(
        "Every device is as it was before Berth gated it, and no agent gates it again.",
        "To take this host back: berth-host resume",
        "To take Berth off it: systemctl disable --now berth-host",
        *modprobe.advice(),
    )
    return 0


def _settled(desk: Desk, said: ByHand) -> int:
    if not desk.running:
        _print(_NO_AGENT)
        return 0
    if desk.obeyed(said) is None:
        _print(_LATE)
        return 1
    return 0


def _desk(options: argparse.Namespace) -> Desk:
    return Desk(os.environ, options.state_dir)


def _print(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def add_to(commands: Any) -> None:
    """The commands of this file, for an argparse parser."""
    one = _command(
        commands, "grant", grant, "give somebody a device for a while, before any booking"
    )
    one.add_argument("user", help="a name of this host, or a uid")
    one.add_argument("device", help="its index, or how its UUID begins")
    one.add_argument(
        "--for",
        dest="for_",
        type=_duration,
        required=True,
        metavar="TIME",
        help="90m, 4h, 1d12h; 0",
    )
    one = _command(commands, "hold", hold, "change no gate and stop nobody, until resumed")
    one.add_argument("--for", dest="for_", type=_duration, metavar="TIME", help="90m, 4h")
    one.add_argument("--reason", default="", help="people read it")
    _command(commands, "resume", resume, "end a hold, or take a released host back")
    one = _command(
        commands, "yield", yield_, "let go of a device: for a reset, MIG, a driver reload"
    )
    one.add_argument("device", nargs="*", help="its index, or how its UUID begins")
    one.add_argument("--back", action="store_true", help="look after it again, or after all")
    _command(commands, "adopt", adopt, "let whatever runs now stay until its device is booked")
    _command(commands, "release-host", release_host, "put every device node back as it was")


def _command(commands: Any, name: str, run: Any, text: str) -> Any:
    one = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    one.add_argument("--state-dir", help="[$BERTH_STATE_DIR]")
    one.set_defaults(run=run)
    return one


def _duration(text: str) -> timedelta:
    try:
        return duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
