"""What root types on a host: with the agent running, without one, over restarts, and without a server.

The command line runs as a process of its own, as it does for root.
"""

import json
import subprocess
import sys
from datetime import datetime, timedelta

import msgspec
import pytest

from reservations.core.wire import Hold, HostSettings
from tests.host.control_plane import grant, real_now
from tests.host.kit import ROOT, is_alive
from tests.host.people import as_person
from tests.waiting import until
from workers.host import status
from workers.host.by_hand import HandFile
from workers.host.clock import HostClock
from workers.host.commands.desk import Desk
from workers.host.commands.words import WrongCall


class Terminal:
    """Root's, on the simulated host. Nothing of the control plane is set there."""

    def __init__(self, sim, **environment) -> None:
        self.sim = sim
        told = sim.environment("")
        wanted = {"PATH", "BERTH_STATE_DIR", "BERTH_RUN_DIR", "BERTH_VENDOR", "BERTH_GATE"}
        self.environment = {name: told[name] for name in wanted} | environment

    def types(self, *words, code=0):
        done = subprocess.run(
            [sys.executable, "-m", "workers.host", *words],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=40,
        )
        assert done.returncode == code, done
        return done.stdout + done.stderr


@pytest.fixture
def root(sim):
    return Terminal(sim, SUDO_USER="olga")


@pytest.fixture
def busy(sim, plane):
    """An agent that has heard of its plan, in which alice has the first device."""
    plane.grants = (grant(sim.uuids[0], "alice"),)
    agent = sim.agent(plane.url)
    until(lambda: sim.granted("alice"))
    return agent


def seen(sim):
    return status.read(sim.state_dir)


def test_a_grant_by_hand_opens_a_device_at_once_while_the_server_is_down(sim, plane, busy, root):
    plane.down()
    began = real_now()

    said = root.types("grant", "bob", "1", "--for", "4h")

    assert sim.granted("bob", index=1)
    assert sim.granted("alice")
    assert "bob (61002) has 1 A100 80GB" in said
    assert "open to them now" in said
    assert "To end it earlier: berth-host grant bob 1 --for 0" in said
    assert (real_now() - began).total_seconds() < 5
    plane.up()
    told = until(lambda: plane.find("granted_by_hand"))
    assert (told.device, told.unix_name, told.uid) == (sim.uuids[1], "bob", 61002)
    assert told.booking is None
    assert "by olga as root" in told.text
    assert until(lambda: plane.find("opened") and _about(plane, "opened", "bob"))


def test_a_grant_by_hand_goes_before_the_booking_and_ends_by_itself(sim, plane, busy, root):
    job = sim.job("alice")

    root.types("grant", "bob", sim.uuids[0][:12], "--for", "3s")

    assert sim.granted("bob")
    assert not sim.granted("alice")
    until(lambda: sim.granted("alice"))
    assert not sim.granted("bob")
    assert is_alive(job)
    delayed = until(lambda: plane.find("delayed"))
    assert (delayed.booking, delayed.unix_name) == (1, "alice")


def test_a_grant_by_hand_outlives_a_reboot_while_the_server_is_away(sim, plane, root):
    first = sim.agent(plane.url)
    until(lambda: not sim.may_open("bob", index=1))
    root.types("grant", "bob", "1", "--for", "4h")
    first.stop()
    plane.down()
    # As a driver makes its nodes after a boot.
    (sim.state_dir / "gate.json").unlink()

    sim.agent(plane.url, clock=HostClock(boot="after"))

    until(lambda: sim.granted("bob", index=1))


def test_past_the_end_of_an_incomplete_plan_root_is_told_that_nothing_moves(sim, plane, root):
    plane.complete_until = real_now() + timedelta(seconds=3)
    sim.agent(plane.url)
    until(lambda: not sim.may_open("bob"))
    until(lambda: any(p.code == "plan_incomplete" for p in seen(sim).health))

    said = root.types("grant", "bob", "0", "--for", "1h", code=1)

    assert "no gate changes until the server was reached" in said
    assert not sim.may_open("bob")


def test_a_grant_by_hand_is_taken_away_again(sim, plane, busy, root):
    root.types("grant", "bob", "1", "--for", "4h")

    said = root.types("grant", "bob", "1", "--for", "0")

    assert "by hand no more" in said
    until(lambda: not sim.may_open("bob", index=1))
    until(lambda: plane.kinds().count("granted_by_hand") == 2)


@pytest.mark.slow
def test_a_grant_by_hand_outlives_the_agent_and_ends_while_the_agent_is_gone(sim, plane, root):
    first = sim.agent(plane.url)
    until(lambda: not sim.may_open("bob", index=1))
    root.types("grant", "bob", "1", "--for", "6s")
    job = sim.job("bob", index=1)
    first.stop()
    assert sim.granted("bob", index=1)
    until(lambda: real_now() > seen(sim).grants[0].end, limit_s=15)

    sim.agent(plane.url)

    until(lambda: not sim.may_open("bob", index=1))
    until(lambda: not is_alive(job))
    until(lambda: _about(plane, "overrun", "bob"))


def test_without_an_agent_a_grant_by_hand_opens_the_device_and_stops_nobody(sim, plane, busy, root):
    busy.stop()
    intruder = sim.job("carol", index=0)

    said = root.types("grant", "bob", "1", "--for", "1h")

    assert sim.granted("bob", index=1)
    assert sim.granted("alice")
    assert is_alive(intruder)
    assert "No agent runs: nothing closes it at the end until one does." in said
    assert "open to them now" in said


def test_a_grant_by_hand_waits_until_nobody_foreign_is_on_the_device(sim, plane, root):
    plane.settings = msgspec.structs.replace(sim.settings, intruder_grace_s=60)
    sim.agent(plane.url)
    until(lambda: not sim.may_open("bob"))
    stranger = sim.job("carol")
    until(lambda: any(d.holders for d in seen(sim).devices))

    said = root.types("grant", "bob", "0", "--for", "1h", code=1)

    assert "opens to them once nobody without a right is on it" in said
    assert str(stranger) in said
    assert not sim.may_open("bob")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("grant", "zed", "0", "--for", "1h"), "zed is unknown on this host"),
        (("grant", "alice", "7", "--for", "1h"), "there is no device 7; the devices of this host:"),
        (("grant", "alice", "GPU-", "--for", "1h"), "2 devices begin with GPU-; the devices"),
        (("grant", "alice", "0", "--for", "soon"), "expected a duration such as 90m, 4h or 1d12h"),
        (("grant", "0", "0", "--for", "1h"), "root may use every device as it is"),
        (("yield",), "which device?"),
    ],
)
def test_what_cannot_be_done_as_typed_is_said_plainly(sim, plane, busy, root, words, says):
    before = HandFile(sim.state_dir).read()

    said = root.types(*words, code=2)

    assert says in said
    assert HandFile(sim.state_dir).read() == before
    if "the devices" in says:
        assert all(uuid in said for uuid in sim.uuids)


@pytest.mark.root
def test_nobody_but_root_may(tmp_path):
    def attempt():
        try:
            Desk({}, str(tmp_path))
        except WrongCall as error:
            return str(error)
        return "let in"

    assert as_person(65534, attempt) == "only root may do this; try it with sudo"


@pytest.mark.slow
def test_during_a_hold_no_gate_moves_and_nobody_is_stopped(sim, plane, busy, root):
    said = root.types("hold", "--for", "2h", "--reason", "moving racks")
    assert "no gate is changed and nobody is stopped" in said
    assert "To go on: berth-host resume" in said
    began = seen(sim).at
    intruder = sim.job("bob")
    gate = sim.gate(0)
    plane.grants = (
        msgspec.structs.replace(plane.grants[0], end=real_now()),
        grant(sim.uuids[1], "carol", booking=2),
    )
    busy.nudge()
    # Longer than an intruder is left alone here, and than an end takes.
    until(lambda: (seen(sim).at - began).total_seconds() > 4)

    assert sim.gate(0) == gate
    assert not sim.granted("carol", index=1)
    assert is_alive(intruder)
    held = [p for p in plane.samples[-1].health if p.code == "held"]
    assert "moving racks" in held[0].text
    assert "moving racks" in root.types("status", code=1)

    root.types("resume")

    until(lambda: not sim.may_open("alice"))
    until(lambda: sim.granted("carol", index=1))
    until(lambda: not is_alive(intruder))
    kinds = plane.kinds()
    assert kinds.count("held") == kinds.count("resumed") == 1


def test_a_hold_ends_when_its_time_is_over_by_the_clock_that_is_trusted(sim, plane, root):
    ahead = HostClock(wall=lambda: real_now() + timedelta(hours=5))
    plane.grants = (grant(sim.uuids[0], "alice"),)
    agent = sim.agent(plane.url, clock=ahead)
    until(lambda: sim.granted("alice"))
    root.types("hold", "--for", "3s")
    until(lambda: seen(sim).hold)
    plane.grants = (msgspec.structs.replace(plane.grants[0], end=real_now()),)
    agent.nudge()

    until(lambda: not sim.may_open("alice"))

    assert until(lambda: plane.find("resumed")).text == "the hold is over"


def test_a_hold_counts_over_a_restart_and_without_a_server(sim, plane, busy, root):
    root.types("hold")
    busy.stop()
    plane.down()

    sim.agent(plane.url)
    intruder = sim.job("bob")
    began = seen(sim).at
    until(lambda: (seen(sim).at - began).total_seconds() > 3)

    assert seen(sim).hold
    assert is_alive(intruder)
    assert sim.granted("alice")


def test_a_hold_of_the_server_is_obeyed_told_and_root_learns_that_it_is_not_his(
    sim, plane, busy, root
):
    hold = Hold(reason="power works")
    plane.settings = msgspec.structs.replace(sim.settings, hold=hold)
    plane.grants = ()
    busy.nudge()
    until(lambda: seen(sim).hold == hold)
    intruder = sim.job("bob")

    assert "power works" in until(lambda: plane.find("held")).text
    said = root.types("resume", code=1)
    assert "An operator of the server holds it still" in said
    assert sim.granted("alice")
    assert is_alive(intruder)
    plane.settings = sim.settings
    busy.nudge()
    until(lambda: not is_alive(intruder))
    # One of root's typing, one of the operator's hold that ended.
    until(lambda: plane.kinds().count("resumed") == 2)


def test_a_yielded_device_is_left_alone_shown_and_taken_back(sim, plane, busy, root):
    said = root.types("yield", "1")
    assert f"berth-host yield --back {sim.uuids[1]}" in said
    gate = sim.gate(1)
    plane.grants = (*plane.grants, grant(sim.uuids[1], "bob", booking=2))
    busy.nudge()
    until(lambda: len(busy.plans.in_force().grants) == 2)
    began = seen(sim).at
    until(lambda: seen(sim).at > began)

    assert sim.gate(1) == gate
    assert [d.gate for d in seen(sim).devices if d.uuid == sim.uuids[1]] == ["left alone"]
    yielded = until(lambda: [p for p in plane.samples[-1].health if p.code == "yielded"])
    assert yielded[0].device == sim.uuids[1]
    assert sim.granted("alice"), "the other device goes on"

    root.types("yield", "--back", sim.uuids[1])

    until(lambda: sim.granted("bob", index=1))
    until(lambda: plane.find("taken_back"))
    assert plane.find("yielded").device == plane.find("taken_back").device == sim.uuids[1]


def test_with_a_yielded_device_the_vendor_is_closed_and_asked_nothing(sim, plane, busy, root):
    asked = []
    vendor = busy._vendor
    sample, devices, close = vendor.sample, vendor.devices, vendor.close
    vendor.sample = lambda uuid: (asked.append("sample"), sample(uuid))[1]
    vendor.devices = lambda: (asked.append("devices"), devices())[1]
    vendor.close = lambda: (asked.append("close"), close())[1]

    root.types("yield", "0")
    until(lambda: "close" in asked)
    asked.clear()
    began = seen(sim).at
    until(lambda: (seen(sim).at - began).total_seconds() > 2)
    assert asked == []

    root.types("yield", "--back")
    until(lambda: "sample" in asked)
    assert asked[0] == "devices" or "devices" in until(lambda: asked)


@pytest.mark.slow
def test_adopting_lets_stay_what_runs_until_its_device_is_booked(sim, plane, root):
    plane.settings = msgspec.structs.replace(sim.settings, intruder_grace_s=12)
    agent = sim.agent(plane.url)
    until(lambda: not sim.may_open("bob"))
    old = sim.job("bob")
    until(lambda: plane.find("intruder"))
    # Start times of processes are known to two seconds.
    until(lambda: (real_now() - plane.find("intruder").at).total_seconds() > 3)

    root.types("adopt")

    warned = until(lambda: plane.find("warned"))
    until(lambda: (real_now() - warned.at).total_seconds() > 14, limit_s=20)
    assert is_alive(old)
    plane.grants = (grant(sim.uuids[0], "alice"),)
    agent.nudge()
    until(lambda: not is_alive(old), limit_s=20)
    assert until(lambda: plane.find("adopted"))


def test_a_released_host_is_as_it_was_and_stays_so_until_taken_back(sim, plane, busy, root):
    said = root.types("release-host")
    assert "as it was before Berth gated it" in said
    assert sim.gate(0).group_open
    assert sim.gate(1).group_open
    intruder = sim.job("bob")
    busy.stop()
    sim.agent(plane.url)
    until(lambda: any(p.code == "released_host" for p in seen(sim).health))
    began = seen(sim).at
    until(lambda: (seen(sim).at - began).total_seconds() > 3)
    assert sim.gate(0).group_open
    assert is_alive(intruder)

    root.types("resume")

    until(lambda: not sim.may_open("bob"))
    until(lambda: not is_alive(intruder))
    assert until(lambda: plane.find("taken_back"))
    assert plane.find("released_host")


def test_a_host_is_released_without_an_agent_and_without_its_settings(sim, plane, busy, root):
    busy.stop()
    plane.down()
    assert not sim.gate(1).group_open

    root.types("release-host")

    assert sim.gate(0).group_open
    assert sim.gate(1).group_open
    assert seen(sim).released_at


def test_damage_to_what_was_said_by_hand_holds_the_host_until_root_begins_anew(
    sim, plane, busy, root
):
    root.types("grant", "bob", "1", "--for", "1h")
    busy.stop()
    path = sim.state_dir / "by_hand.json"
    path.write_bytes(path.read_bytes().replace(b"61002", b"61003"))
    agent = sim.agent(plane.url)
    until(lambda: any(p.code == "by_hand_damaged" for p in seen(sim).health))
    plane.grants = ()
    agent.nudge()
    intruder = sim.job("carol")
    assert seen(sim).hold
    assert "begins anew" in root.types("grant", "bob", "1", "--for", "1h", code=2)
    assert is_alive(intruder)
    assert sim.granted("bob", index=1)

    root.types("resume")

    until(lambda: not sim.granted("bob", index=1))
    assert (sim.state_dir / "by_hand.json.corrupt").exists()


def test_what_was_said_while_no_agent_ran_is_told_once(sim, plane, root):
    root.types("hold")
    root.types("resume")

    agent = sim.agent(plane.url)

    until(lambda: plane.find("resumed"))
    until(lambda: not len(agent.spool))
    told = [r.kind for r in plane.reports if r.kind in {"held", "resumed"}]
    assert told == ["held", "resumed"]
    assert list((sim.state_dir / "by_hand.reports").iterdir()) == []


def test_status_as_json_names_what_root_said(sim, plane, busy, root):
    root.types("grant", "bob", "1", "--for", "1h")
    root.types("yield", "0")

    found = json.loads(root.types("status", "--json", code=1))

    assert found["running"] is True
    assert found["yielded"] == [sim.uuids[0]]
    by_hand = [one for one in found["grants"] if one["booking"] is None]
    assert [(one["unix_name"], one["device"]) for one in by_hand] == [("bob", sim.uuids[1])]
    assert datetime.fromisoformat(by_hand[0]["end"]) > real_now() + timedelta(minutes=59)


def test_in_mode_observe_a_grant_by_hand_says_that_the_device_is_open_anyway(sim, plane, root):
    plane.settings = HostSettings(managed=tuple(sim.uuids), sample_s=1)
    sim.agent(plane.url)
    until(lambda: seen(sim) and seen(sim).plan_as_of)

    assert "open to the access group" in root.types("grant", "bob", "0", "--for", "1h")


def _about(plane, kind, person):
    return next((r for r in plane.reports if (r.kind, r.unix_name) == (kind, person)), None)
