"""What reaches people's terminals and the public file, and that it does so once."""

import json

import msgspec
import pytest

from reservations.core.enforcement import Ladder, PlanState
from reservations.core.wire import DeviceInfo, HostSettings, Report
from tests.core.stage import GPU, at, grant
from tests.host.screens import Screen
from workers.host.config import Config
from workers.host.plans import InForce
from workers.host.telling import Teller

pytestmark = pytest.mark.root
# Of no other test: everybody with such a uid on this machine is told.
ALICE, BOB = 61911, 61912
DEVICE = DeviceInfo(uuid=GPU, vendor="test", index=0, model="A card")


@pytest.fixture
def screen():
    made = Screen(ALICE)
    yield made
    made.close()


@pytest.fixture
def config(tmp_path):
    return Config(
        host="gpu-01", url="https://berth.example", token="t", state_dir=tmp_path,
        run_dir=tmp_path / "run",
    )  # fmt: skip


class Life:
    """A teller from its start to its end; `look` is a tick."""

    def __init__(self, config, *, people_are_real=True):
        self.teller = Teller(config, people_are_real=people_are_real)

    def __enter__(self):
        self.teller.start()
        return self

    def __exit__(self, *_):
        # Everything that was said has been written after this.
        self.teller.stop()

    def look(self, *grants, now, mode="warn", reports=()):
        self.teller.hear(reports)
        in_force = InForce(
            grants=grants, settings=HostSettings(mode=mode), state=PlanState(as_of=now)
        )
        self.teller.tell({}, in_force, [DEVICE], ladder=Ladder(), now=now)


def report(kind, text=""):
    return Report(id=f"of-{kind}", at=at(0), kind=kind, device=GPU, uid=ALICE, text=text)


def warned():
    return report("warned", "not booked")


def test_a_step_is_told_once_also_across_restarts(config, screen):
    mine = grant(ALICE, booking=7)
    for life in range(3):
        with Life(config) as one:
            one.look(mine, now=at(minutes=46 + life))
            one.look(mine, now=at(minutes=46 + life, seconds=5))
    assert screen.shown().count(b"\a") == 1
    assert "in 14 min. Save your work, or extend it: https://berth.example/bookings/7/" in (
        screen.text()
    )

    with Life(config) as one:
        one.look(mine, now=at(minutes=55))
    assert "in 5 min." in screen.text()


def test_an_extended_booking_is_told_of_its_new_end(config, screen):
    mine = grant(ALICE, booking=7)
    longer = msgspec.structs.replace(mine, end=at(hours=2))
    with Life(config) as one:
        one.look(mine, now=at(minutes=50))
        one.look(longer, now=at(minutes=51))
        one.look(longer, now=at(minutes=105))
    assert screen.shown().count(b"\a") == 2


def test_only_whom_it_concerns_is_told(config, screen):
    bobs = Screen(BOB)
    with Life(config) as one:
        one.look(grant(ALICE), now=at(minutes=50))
    assert (screen.shown().count(b"\a"), bobs.shown()) == (1, b"")
    bobs.close()


def test_in_mode_observe_nobody_is_told_and_nothing_is_told_later(config, screen):
    with Life(config) as one:
        one.look(grant(ALICE), now=at(minutes=50), mode="observe", reports=[warned()])
        assert screen.shown() == b""
        one.look(grant(ALICE), now=at(minutes=51), mode="warn")
    assert screen.shown().count(b"\a") == 1
    assert "not booked" not in screen.text()


def test_what_was_done_is_told_once(config, screen):
    with Life(config) as one:
        one.look(now=at(0), reports=[warned()])
        one.look(now=at(5))
    assert screen.shown().count(b"\a") == 1
    assert "not booked" in screen.text()


def test_an_opening_is_told_to_whoever_waited_for_it_and_to_nobody_else(config, screen):
    with Life(config) as one:
        one.look(now=at(0), reports=[report("opened")])
        one.look(now=at(1), reports=[report("delayed", "waiting")])
        one.look(now=at(2), reports=[report("opened")])
        one.look(now=at(3), reports=[report("opened")])
    assert screen.shown().count(b"\a") == 2
    assert "is not open yet: waiting." in screen.text()
    assert screen.text().endswith("Berth: GPU 0 on gpu-01 is open for you now.")


def test_people_of_a_simulated_host_are_nobody_on_the_machine_it_runs_on(config, screen):
    with Life(config, people_are_real=False) as one:
        one.look(grant(ALICE), now=at(minutes=50))
    assert screen.shown() == b""


def test_an_agent_that_takes_one_look_leaves_the_telling_to_the_next(config, screen):
    Life(config).look(grant(ALICE), now=at(minutes=50))
    with Life(config) as one:
        one.look(grant(ALICE), now=at(minutes=50))
    assert screen.shown().count(b"\a") == 1


def test_a_damaged_memory_is_set_aside(config, screen):
    (config.state_dir / "told.json").write_text("nonsense")
    with Life(config) as one:
        one.look(grant(ALICE), now=at(minutes=50))
    assert screen.shown().count(b"\a") == 1
    assert (config.state_dir / "told.json.corrupt").exists()


def test_what_was_told_is_forgotten_some_time_after_its_end(config, screen):
    with Life(config) as one:
        one.look(grant(ALICE, booking=1), now=at(minutes=50))
        later = grant(ALICE, at(hours=3), booking=2)
        one.look(later, now=at(hours=3, minutes=50))
    kept = (config.state_dir / "told.json").read_text()
    assert '"2:' in kept
    assert '"1:' not in kept


def test_where_it_cannot_be_written_down_it_is_told_all_the_same(config, screen):
    (config.state_dir / "told.json.tmp").mkdir()
    with Life(config) as one:
        one.look(grant(ALICE), now=at(minutes=50))
        one.look(grant(ALICE), now=at(minutes=51))
    assert screen.shown().count(b"\a") == 1


def test_the_public_file_follows_every_look_in_every_mode(config):
    with Life(config) as one:
        for now, mode in ((at(0), "observe"), (at(6), "enforce")):
            one.look(grant(ALICE), now=now, mode=mode)
            public = json.loads((config.run_dir / "devices.json").read_bytes())
            assert (public["mode"], public["at"]) == (mode, now.isoformat().replace("+00:00", "Z"))
            assert public["devices"][0]["booked_by"] == [f"u{ALICE}"]


def test_a_public_file_that_cannot_be_written_is_a_problem_and_the_rest_goes_on(config, screen):
    config.run_dir.touch()
    with Life(config) as one:
        one.look(grant(ALICE), now=at(minutes=50))
        assert [problem.code for problem in one.teller.problems()] == ["public_file"]
        config.run_dir.unlink()
        one.look(grant(ALICE), now=at(minutes=51))
        assert one.teller.problems() == []
    assert screen.shown().count(b"\a") == 1
