import stat

from reservations.core.wire import Report
from tests.host.clocks import NOON
from workers.host.spool import Spool


def report(number):
    return Report(id=f"report-{number:04d}", at=NOON, kind="opened")


def test_reports_survive_a_restart_in_their_order(tmp_path):
    path = tmp_path / "spool.jsonl"
    Spool(path).add(report(1), report(2))
    Spool(path).add(report(3))

    assert [r.id[-1] for r in Spool(path).oldest(10)] == ["1", "2", "3"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_only_acknowledged_reports_leave(tmp_path):
    path = tmp_path / "spool.jsonl"
    spool = Spool(path)
    spool.add(report(1), report(2), report(3))

    spool.acknowledge({report(1).id, report(3).id, "never-heard-of"})

    assert spool.oldest(10) == Spool(path).oldest(10) == (report(2),)


def test_a_line_cut_short_by_a_crash_costs_only_itself(tmp_path):
    path = tmp_path / "spool.jsonl"
    Spool(path).add(report(1), report(2))
    path.write_bytes(path.read_bytes()[:-20])

    spool = Spool(path)
    spool.add(report(3))

    assert [r.id for r in Spool(path).oldest(10)] == [report(1).id, report(3).id]
    assert (tmp_path / "spool.jsonl.corrupt").exists()


def test_a_full_spool_keeps_the_beginning_of_the_story(tmp_path):
    spool = Spool(tmp_path / "spool.jsonl", limit=2)

    spool.add(report(1), report(2), report(3))
    spool.add(report(4))

    assert spool.oldest(10) == (report(1), report(2))
    assert spool.full


def test_a_report_is_kept_in_memory_when_the_disk_fails(tmp_path):
    spool = Spool(tmp_path / "not" / "there")

    spool.add(report(1))

    assert spool.oldest(1) == (report(1),)
