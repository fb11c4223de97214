"""What hosts say they have."""

import pytest

from reservations.core.errors import DeviceElsewhere, Invalid, NotFound, NotPossibleNow
from reservations.models import AuditEntry, Device, Notice
from reservations.services import hosts
from reservations.services.actors import BERTH
from reservations.services.inventory import store_inventory
from reservations.services.plans import plan_for
from reservations.services.rebinding import rebind_lost_devices
from tests import build
from tests.build import NOON
from tests.hosts import HOUR, MINUTE, info, inventory, registered

pytestmark = pytest.mark.django_db


@pytest.fixture
def host():
    return registered()[0]


def found(uuid="GPU-a"):
    return Device.objects.get(uuid=uuid)


def verbs(host):
    return list(AuditEntry.objects.filter(host=host).order_by("id").values_list("verb", flat=True))


def test_a_new_device_is_neither_managed_nor_bookable_until_somebody_says_so(host):
    store_inventory(host, inventory("GPU-a"), now=NOON)
    assert (found().managed_by, found().bookable) == ("none", False)
    hosts.enable_devices(host, None, actor=BERTH, now=NOON)
    assert (found().managed_by, found().bookable) == ("berth", True)
    assert verbs(host) == ["host_added", "device_added", "device_changed"]


def test_the_same_inventory_again_changes_nothing(host):
    for _ in range(2):
        store_inventory(host, inventory("GPU-a"), now=NOON)
    assert verbs(host) == ["host_added", "device_added"]


def test_index_and_minor_follow_the_vendor_and_the_uuid_stays(host):
    """Indexes swap after a reboot; bookings hold on to the card."""
    store_inventory(host, inventory(info("GPU-a", index=0), info("GPU-b", index=1)), now=NOON)
    store_inventory(
        host, inventory(info("GPU-a", index=1, minor=4), info("GPU-b", index=0)), now=NOON
    )
    assert (found("GPU-a").index, found("GPU-a").minor, found("GPU-b").index) == (1, 4, 0)


def test_a_missing_device_is_lost_since_then_and_comes_back(host):
    operator = build.operator()
    store_inventory(host, inventory("GPU-a"), now=NOON)
    for minute in (1, 2):
        store_inventory(host, inventory(), now=NOON + minute * MINUTE)
    assert (found().state, found().state_since) == ("lost", NOON + MINUTE)
    store_inventory(host, inventory("GPU-a"), now=NOON + HOUR)
    assert (found().state, found().state_since) == ("ok", NOON + HOUR)
    assert verbs(host)[1:] == ["device_added", "device_lost", "device_back"]
    (notice,) = Notice.objects.filter(user=operator)
    assert notice.text.startswith("Test 80GB · 0 on gpu1 is lost")


@pytest.mark.parametrize("state", ["needs_attention", "retired"])
def test_what_an_operator_has_to_clear_is_not_cleared_by_the_host(host, state):
    store_inventory(host, inventory("GPU-a"), now=NOON)
    Device.objects.update(state=state)
    store_inventory(host, inventory("GPU-a"), now=NOON)
    assert found().state == state


def test_a_uuid_registered_elsewhere_is_refused_whole_and_operators_hear_of_it(host):
    operator = build.operator()
    theirs = build.device(build.host("gpu2"), uuid="GPU-theirs")
    with pytest.raises(DeviceElsewhere, match="gpu2"):
        store_inventory(host, inventory("GPU-a", "GPU-theirs"), now=NOON)
    assert not Device.objects.filter(host=host).exists()
    theirs.refresh_from_db()
    assert theirs.host.name == "gpu2"
    assert Notice.objects.get(user=operator).kind == "device_elsewhere"


def test_a_retired_card_may_turn_up_on_another_host_and_starts_anew_there(host):
    build.device(build.host(), uuid="GPU-a", state=Device.State.RETIRED)
    store_inventory(host, inventory("GPU-a"), now=NOON)
    card = found()
    assert (card.host, card.state, card.managed_by, card.bookable) == (host, "ok", "none", False)


def test_one_uuid_twice_and_a_part_of_nothing_are_refused(host):
    for wrong in (
        inventory("GPU-a", "GPU-a"),
        inventory(info("MIG-1", kind="mig", parent="GPU-x")),
    ):
        with pytest.raises(Invalid):
            store_inventory(host, wrong, now=NOON)


def test_a_device_that_is_divided_is_no_longer_bookable_and_bookings_on_it_raise_the_alarm(host):
    operator = build.operator()
    store_inventory(host, inventory("GPU-a"), now=NOON)
    hosts.enable_devices(host, None, actor=BERTH, now=NOON)
    build.booking(found(), start=NOON + HOUR)
    parts = inventory(info("MIG-1", kind="mig", parent="GPU-a"), "GPU-a")
    store_inventory(host, parts, now=NOON)
    assert not found().bookable
    assert found("MIG-1").parent == found()
    assert Notice.objects.get(user=operator).kind == "device_divided"
    hosts.enable_devices(host, None, actor=BERTH, now=NOON)
    assert [found(uuid).bookable for uuid in ("GPU-a", "MIG-1")] == [False, True]


def test_only_devices_of_the_host_can_be_enabled(host):
    build.device(uuid="GPU-theirs", bookable=False)
    with pytest.raises(NotFound):
        hosts.enable_devices(host, ["GPU-theirs"], actor=BERTH, now=NOON)
    assert not found("GPU-theirs").bookable


def test_a_device_with_bookings_in_its_tree_does_not_change_hands(host):
    whole = build.device(host, bookable=False)
    part = build.device(host, parent=whole, kind="mig")
    build.booking(part, start=NOON + HOUR)
    for device in (whole, part):
        with pytest.raises(NotPossibleNow):
            hosts.set_use(device, managed_by="slurm", bookable=False, actor=BERTH, now=NOON)
    later = NOON + 3 * HOUR
    changed = hosts.set_use(part, managed_by="slurm", bookable=False, actor=BERTH, now=later)
    assert changed.managed_by == "slurm"


def test_what_berth_does_not_manage_or_what_has_parts_cannot_be_booked(host):
    whole = build.device(host, bookable=False)
    build.device(host, parent=whole, kind="mig")
    for device, managed_by in ((whole, "berth"), (build.device(host), "slurm")):
        with pytest.raises(Invalid):
            hosts.set_use(device, managed_by=managed_by, bookable=True, actor=BERTH, now=NOON)


def test_hosts_have_names_and_tokens_of_their_own(host):
    for wrong in ("gpu1", "with space", "", "x" * 64):
        with pytest.raises(Invalid):
            hosts.add_host(wrong, actor=BERTH, now=NOON)
    other, token = registered("gpu2")
    assert hosts.host_of_token(token) == other
    renewed = hosts.rotate_token(other, actor=BERTH, now=NOON)
    assert hosts.host_of_token(token) is None
    assert hosts.host_of_token(renewed) == other


def test_the_mode_is_changed_with_an_audit_entry_and_never_to_nonsense(host):
    hosts.set_mode(host, mode="warn", settings={"grace_s": 5}, actor=BERTH, now=NOON)
    host.refresh_from_db()
    assert (host.mode, host.settings) == ("warn", {"grace_s": 5})
    entry = AuditEntry.objects.get(verb="host_changed")
    assert (entry.before["mode"], entry.after["mode"]) == ("enforce", "warn")
    with pytest.raises(Invalid):
        hosts.set_mode(host, mode="shout", settings={}, actor=BERTH, now=NOON)


def test_a_part_that_vanishes_flags_its_booking_and_gives_nobody_the_whole_gpu(host):
    """Not even one of the same model that is whole again."""
    operator, owner = build.operator(), build.user()
    build.account(owner)
    whole, part = info("GPU-a"), info("MIG-1", kind="mig", parent="GPU-a")
    store_inventory(host, inventory(whole, part), now=NOON)
    hosts.enable_devices(host, None, actor=BERTH, now=NOON)
    booking = build.booking(found("MIG-1"), owner=owner, start=NOON + HOUR)

    store_inventory(host, inventory(whole), now=NOON)
    rebind_lost_devices(now=NOON + 11 * MINUTE)

    assert (found("MIG-1").state, found().bookable) == ("lost", False)
    assert AuditEntry.objects.filter(booking=booking, verb="flagged").exists()
    told = Notice.objects.filter(kind="flagged").values_list("user", flat=True)
    assert set(told) == {owner.pk, operator.pk}
    granted = {grant.device for grant in plan_for(host, now=NOON + HOUR).grants}
    assert granted == {"MIG-1"}
