import stat

import pytest

from reservations.core.enforcement import GateMark, GateState, Ladder, Rung
from reservations.core.wire import HostSettings, Plan, Report
from tests.host.clocks import NOON
from tests.host.control_plane import grant
from workers.host.clock import Anchor
from workers.host.plan_store import PlanStore, StoredLadder, StoredPlan, Unreadable


def stored():
    plan = Plan(
        host="sim-a",
        epoch="e",
        etag="t",
        as_of=NOON,
        server_time=NOON,
        grants=(grant("GPU-1"),),
        settings=HostSettings(mode="enforce"),
    )
    anchor = Anchor(boot_id="boot-1", boottime_s=1.5, server_time=NOON)
    return StoredPlan(plan=plan, as_of=NOON, fetched_at=NOON, anchor=anchor, uids={"alice": 61001})


def ladder():
    rung = Rung(device="GPU-1", uid=61001, kind="overrun", since=NOON, signalled_at=NOON)
    mark = GateMark(device="GPU-1", state=GateState(uids=frozenset({61001})))
    return Ladder(rungs=(rung,), gates=(mark,), enforcing_since=NOON)


def test_a_plan_is_read_back_as_it_was_written_and_only_root_may_read_it(tmp_path):
    store = PlanStore(tmp_path)

    store.save_plan(stored())

    assert PlanStore(tmp_path).load_plan().uids == stored().uids
    assert PlanStore(tmp_path).load_plan().plan.host == "sim-a"
    assert stat.S_IMODE((tmp_path / "plan.json").stat().st_mode) == 0o600


def test_no_plan_is_not_a_damaged_one(tmp_path):
    assert PlanStore(tmp_path).load_plan() is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-10],
        lambda content: content.replace(b"61001", b"61002"),
        lambda content: b"",
        lambda content: b"\xff\xfe" + content,
    ],
)
def test_a_damaged_plan_is_set_aside_and_never_half_believed(tmp_path, damage):
    store = PlanStore(tmp_path)
    store.save_plan(stored())
    path = tmp_path / "plan.json"
    path.write_bytes(damage(path.read_bytes()))

    with pytest.raises(Unreadable):
        store.load_plan()

    assert not path.exists()
    assert (tmp_path / "plan.json.corrupt").exists()
    assert store.load_plan() is None


def test_the_ladder_loses_its_pids_with_a_reboot_and_nothing_with_a_restart(tmp_path):
    store = PlanStore(tmp_path)
    report = Report(id="report-1", at=NOON, kind="signalled")
    store.save_ladder(StoredLadder(boot_id="boot-1", ladder=ladder(), reports=(report,)))

    assert store.load_ladder("boot-1").ladder == ladder()
    assert store.load_ladder("boot-2").ladder == ladder().after_reboot()
    assert store.load_ladder("boot-2").reports == (report,)


@pytest.mark.parametrize("content", [None, b"nonsense"])
def test_a_missing_or_damaged_ladder_begins_anew(tmp_path, content):
    if content:
        (tmp_path / "ladder.json").write_bytes(content)

    assert PlanStore(tmp_path).load_ladder("boot-1") == StoredLadder(boot_id="boot-1")
