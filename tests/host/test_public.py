"""What everybody on a host may read, and how it gets into its file."""

import json
import os
import stat
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from reservations.core.enforcement import Ladder, PlanState, Rung
from reservations.core.wire import DeviceInfo, HostSettings, ProcessUse, Sample
from tests.core.stage import ALICE, BOB, GPU, at, grant
from tests.host import public_host
from tests.host.people import as_person, let_everybody_into
from workers.host import public
from workers.host.plans import InForce
from workers.host.public import PublicFile, Unavailable

NOW = at(minutes=30)
DEVICE = DeviceInfo(uuid=GPU, vendor="test", index=0, model="A card")


def seen(*grants, users=(), show_owners=True, ladder=None, **fields):
    """How the device is shown with these grants and these people on it."""
    processes = tuple(
        ProcessUse(pid=uid, uid=uid, unix_name=f"u{uid}", memory_bytes=1) for uid in users
    )
    sample = Sample(uuid=GPU, at=NOW, last_busy=NOW, **{"processes": processes, **fields})
    in_force = InForce(
        grants=grants,
        settings=HostSettings(show_owners=show_owners),
        state=PlanState(as_of=NOW),
    )
    samples = {GPU: sample}
    (device,) = public.of_devices([DEVICE], samples, in_force, ladder=ladder or Ladder(), now=NOW)
    return device


class TestWhatIsShown:
    def test_who_has_booked_a_device_until_when_and_when_the_next_one_begins(self):
        device = seen(grant(ALICE), grant(BOB, at(hours=2)), users=[ALICE])
        assert (device.booked_by, device.booked_until) == (("u61001",), at(hours=1))
        assert device.next_booking_at == at(hours=2)
        assert (device.verdict, device.held_by) == ("in_use", ("u61001",))

    def test_a_free_device(self):
        device = seen()
        assert (device.verdict, device.booked_by, device.held_by) == ("free", (), ())
        assert (device.booked_until, device.processes) == (None, ())

    @pytest.mark.parametrize(
        ("grants", "verdict"), [((), "unbooked_use"), ((grant(ALICE),), "foreign_use")]
    )
    def test_somebody_without_a_right(self, grants, verdict):
        device = seen(*grants, users=[BOB])
        assert (device.verdict, device.held_by) == (verdict, ("u61002",))

    def test_what_cannot_be_read_is_unknown_and_not_nobody(self):
        device = seen(processes=None, health="stale")
        assert (device.verdict, device.held_by, device.processes) == ("no_data", None, None)

    def test_a_device_that_was_not_looked_at(self):
        in_force = InForce(grants=(), settings=HostSettings(), state=PlanState(as_of=NOW))
        (device,) = public.of_devices([DEVICE], {}, in_force, ladder=Ladder(), now=NOW)
        assert (device.health, device.verdict) == ("unknown", "no_data")

    def test_a_process_that_cannot_be_ended(self):
        rung = Rung(device=GPU, uid=BOB, kind="overrun", since=at(0), stuck_at=at(minutes=1))
        assert seen(users=[BOB], ladder=Ladder(rungs=(rung,))).verdict == "needs_attention"

    @pytest.mark.parametrize("users", [[ALICE], [BOB], []])
    def test_no_name_is_in_the_file_where_the_site_hides_owners(self, users):
        device = seen(grant(ALICE), grant(BOB, at(hours=2)), users=users, show_owners=False)
        assert b"u6100" not in msgspec.json.encode(device)
        assert device.booked_until == at(hours=1)
        assert [one.pid for one in device.processes] == users


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


def content(**fields):
    return public_host.host(public_host.device(0), **fields)


def read(folder):
    return public.read(folder, now=public_host.NOON)[0]


class TestTheFile:
    def test_everybody_may_read_it_whatever_the_umask(self, folder):
        before = os.umask(0o077)
        try:
            PublicFile(folder).write(content())
        finally:
            os.umask(before)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o755
        assert stat.S_IMODE((folder / "devices.json").stat().st_mode) == 0o644
        assert read(folder) == content()
        assert [one.name for one in folder.iterdir()] == ["devices.json"]

    @pytest.mark.root
    def test_an_ordinary_person_reads_it_and_cannot_change_it(self, tmp_path):
        let_everybody_into(tmp_path)
        PublicFile(tmp_path / "run").write(content())

        def attempt():
            path = tmp_path / "run" / "devices.json"
            return json.loads(path.read_bytes())["host"], os.access(path, os.W_OK)

        assert as_person(ALICE, attempt) == ("gpu-01", False)

    def test_it_says_what_is_not_known_and_of_which_form_it_is(self, folder):
        PublicFile(folder).write(public_host.host(public_host.closed()))
        written = json.loads((folder / "devices.json").read_bytes())
        assert (written["version"], written["stale_after_s"]) == (1, 30.0)
        assert written["devices"][0]["booked_by"] is None

    def test_the_same_is_written_again_only_after_a_while(self, folder):
        file = PublicFile(folder)

        def written(seconds, **fields):
            before = _inode(folder)
            file.write(content(at=public_host.NOON + timedelta(seconds=seconds), **fields))
            return _inode(folder) != before

        assert written(0)
        assert not written(4)
        assert written(5)
        assert written(6, mode="warn")
        # A clock that was put back must not keep it old.
        assert written(-60, mode="warn")

    def test_links_and_leftovers_in_its_place_lead_nowhere(self, folder, tmp_path):
        folder.mkdir(mode=0o755)
        victim = tmp_path / "victim"
        victim.write_text("mine")
        for name in ("devices.json", ".devices.json.tmp"):
            (folder / name).symlink_to(victim)
        PublicFile(folder).write(content())
        assert victim.read_text() == "mine"
        assert read(folder) == content()

    def test_a_folder_that_is_a_link_is_refused(self, folder, tmp_path):
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
        file = PublicFile(folder)
        file.write(content())
        assert "cannot be written" in file.problem
        assert list((tmp_path / "elsewhere").iterdir()) == []

    def test_a_folder_into_which_our_own_group_may_write_is_as_good_as_ours(self, folder):
        folder.mkdir()
        folder.chmod(0o775)
        PublicFile(folder).write(content())
        assert read(folder) == content()

    @pytest.mark.root
    @pytest.mark.parametrize(
        ("owner", "group", "mode"), [(0, 0, 0o777), (0, ALICE, 0o775), (ALICE, 0, 0o755)]
    )
    def test_a_folder_into_which_others_may_write_is_refused(self, folder, owner, group, mode):
        folder.mkdir()
        os.chown(folder, owner, group)
        folder.chmod(mode)
        file = PublicFile(folder)
        file.write(content())
        assert file.problem.endswith("others may write into this folder")
        assert list(folder.iterdir()) == []

    def test_a_problem_is_told_and_goes_away(self, folder):
        folder.touch()
        file = PublicFile(folder)
        file.write(content())
        assert str(folder) in file.problem
        folder.unlink()
        file.write(content())
        assert file.problem == ""
        assert read(folder) == content()


class TestReading:
    def test_its_age_counts_from_when_it_was_written(self, folder):
        PublicFile(folder).write(content())
        os.utime(folder / "devices.json", (0, public_host.NOON.timestamp() - 40))
        assert public.read(folder, now=public_host.NOON) == (content(), 40.0)

    @pytest.mark.parametrize(
        ("written", "reason"),
        [
            (None, "is not there: has the agent"),
            (b"{", "is not what this version writes"),
            (b'{"version": 1}', "is not what this version writes"),
            (msgspec.json.encode(content(version=2)), "is of version 2"),
        ],
    )
    def test_what_cannot_be_used_is_said_in_a_sentence(self, folder, written, reason):
        folder.mkdir()
        if written is not None:
            (folder / "devices.json").write_bytes(written)
        with pytest.raises(Unavailable, match=reason):
            read(folder)


def _inode(folder: Path) -> int | None:
    path = folder / "devices.json"
    return path.stat().st_mtime_ns if path.exists() else None
