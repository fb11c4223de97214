"""The manage page: who gets in, what it says of hosts, and what its buttons do."""

import re
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
import redis

from reservations import clock, livestore
from reservations.core.wire import ProcessUse, Sample
from reservations.models import AuditEntry, Device, Host, HostStatus
from reservations.selectors import holds as holds_read
from reservations.services import audit, hosts
from reservations.services.actors import BERTH
from tests import build
from webapp import walltime

pytestmark = pytest.mark.django_db(transaction=True)

DOORS = {
    "get": ["/manage/", "/manage/hosts/gpu1/", "/manage/hosts/gpu1/enforce/"],
    "post": [
        "/manage/hold/",
        "/manage/resume/",
        "/manage/hosts/gpu1/hold/",
        "/manage/hosts/gpu1/resume/",
        "/manage/hosts/gpu1/mode/",
        "/manage/hosts/gpu1/settings/",
        "/manage/hosts/gpu1/enforce/",
        "/manage/hosts/gpu1/fine/",
    ],
}
EVERY_DOOR = [(method, path) for method, paths in DOORS.items() for path in paths]


@pytest.fixture
def host():
    made = build.host("gpu1", mode="observe")
    HostStatus.objects.create(
        host=made,
        last_seen=clock.now(),
        agent_version="0.3",
        mode="observe",
        clock_offset_s=0.012,
    )
    return made


@pytest.fixture
def admin(signed_in):
    return signed_in(build.operator("admin", display_name="Ada"))


@pytest.fixture
def quiet_redis(redis_url):
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
        yield
        client.flushdb()


def text_of(response):
    """What a page shows of its main part, on one line."""
    html = response.content.decode()
    main = html[html.index("<main") : html.index("</main>")]
    return " ".join(re.sub(r"<[^>]+>", " ", main).split())


def seen(host):
    host.refresh_from_db()
    return hosts.behaviour_key(host)


@pytest.mark.parametrize(("method", "path"), EVERY_DOOR)
def test_every_door_is_for_operators(signed_in, host, method, path):
    owner = build.user()
    build.booking(build.device(host), owner=owner)
    for person in (owner, build.user()):
        response = getattr(signed_in(person), method)(path)
        assert response.status_code == 403
        assert "This page is for operators." in text_of(response)
    assert not holds_read.rows(now=clock.now())
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize(("method", "path"), EVERY_DOOR)
def test_whoever_is_not_signed_in_signs_in_first(client, static_files, host, method, path):
    assert getattr(client, method)(path).url == f"/accounts/login/?next={path}"


@pytest.mark.parametrize("path", ["/manage/hosts/gpu9/", "/manage/hosts/gpu9/enforce/"])
def test_a_host_that_is_none_is_404(admin, path):
    assert admin.get(path).status_code == 404


def test_only_operators_find_it_in_the_navigation(signed_in, admin):
    assert b'href="/manage/"' in admin.get("/").content
    assert b'href="/manage/"' not in signed_in(build.user()).get("/").content


@pytest.mark.parametrize("path", DOORS["get"])
def test_the_pages_hold_nothing_inline(admin, host, quiet_redis, path):
    response = admin.get(path)
    html = response.content.decode()
    assert response.status_code == 200
    assert "default-src 'self'" in response.headers["Content-Security-Policy"]
    assert not re.search(r"\sstyle=|\son\w+=|<style", html)


def test_it_says_how_a_host_is(admin, host):
    build.device(host, index=0, model="A100")
    build.device(host, index=1, model="A100", state="needs_attention")
    text = text_of(admin.get("/manage/"))
    assert "gpu1 Needs a look" in text
    assert "Agent 0.3" in text
    assert "Clock +0.012 s" in text
    assert re.search(r"Last heard \d s ago", text)
    assert "Devices 2 (1 needs attention)" in text


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            {"mode": "warn"},
            "You ask for observe, its agent acts in warn: it has not fetched its plan yet.",
        ),
        (
            {"clock_offset_s": 3.21},
            "Its clock is +3.2 s off. Berth goes by the server&#x27;s; set up NTP.",
        ),
        (
            {"health": [{"code": "hold_fire", "text": "nobody new is stopped", "device": None}]},
            "nobody new is stopped",
        ),
        (
            {"health": [{"code": "stuck", "text": "cannot be ended", "device": "GPU-a"}]},
            "A100 · 0: cannot be ended",
        ),
    ],
)
def test_problems_are_told_in_words(admin, host, said, sentence):
    build.device(host, uuid="GPU-a", index=0, model="A100")
    HostStatus.objects.update(**said)
    for path in ("/manage/", "/manage/hosts/gpu1/"):
        assert sentence in text_of(admin.get(path))


def test_a_silent_host_is_said_to_be_silent_and_for_how_long(admin, host):
    HostStatus.objects.update(silent_since=clock.now() - timedelta(minutes=30))
    text = text_of(admin.get("/manage/"))
    assert "gpu1 Silent" in text
    assert "It has been silent for 30 min." in text


def test_a_host_that_never_called_is_told_from_a_silent_one(admin):
    build.host("gpu2")
    text = text_of(admin.get("/manage/"))
    assert "gpu2 Never heard of" in text
    assert "No agent has ever called from here. Start its worker: berth-host run." in text


def test_a_host_is_held_and_resumed(admin, host):
    admin.post("/manage/hosts/gpu1/hold/", {"reason": "new driver", "minutes": "240"})
    (held,) = holds_read.in_force(now=clock.now())
    assert abs(held.until - clock.now() - timedelta(hours=4)) < timedelta(minutes=1)
    text = text_of(admin.get("/manage/hosts/gpu1/"))
    assert re.search(r"Held until .+: new driver by Ada since", text)
    until = walltime.moment_text(held.until, ZoneInfo("UTC"))
    assert f"gpu1 is held until {until}." in text
    assert f"Ada held the host until {until}. new driver" in text
    admin.post("/manage/hosts/gpu1/resume/")
    assert "Ada let the host act again." in text_of(admin.get("/manage/hosts/gpu1/"))
    assert not holds_read.in_force(now=clock.now()).exists()


def test_what_root_gave_by_hand_and_took_away_again_is_told_apart(admin, host):
    about = {"device": build.device(host, index=0, model="A100"), "after": {"unix_name": "alice"}}
    for why in ("until 2027-03-01 13:00 UTC; by root", "taken away again; by root"):
        audit.record("granted_by_hand", actor=BERTH, now=clock.now(), host=host, why=why, **about)
    text = text_of(admin.get("/manage/hosts/gpu1/"))
    assert "gave A100 · 0 (gpu1) to alice. until 2027-03-01 13:00 UTC; by root" in text
    assert "took A100 · 0 (gpu1) from alice again. taken away again; by root" in text


def test_what_the_agent_says_of_the_same_hold_is_not_said_twice(admin, host):
    admin.post("/manage/hosts/gpu1/hold/", {"reason": "new driver", "minutes": "240"})
    by_hand = {"code": "held", "text": "held until resumed (by root): nobody is stopped"}
    obeyed = {"code": "held", "text": "held until 12:00 UTC (new driver): nobody is stopped"}
    HostStatus.objects.update(health=[obeyed])
    assert "12:00 UTC" not in text_of(admin.get("/manage/"))
    HostStatus.objects.update(health=[by_hand])
    assert by_hand["text"] in text_of(admin.get("/manage/"))


def test_a_problem_that_happens_to_quote_the_reason_of_a_hold_is_said(admin, host):
    admin.post("/manage/hosts/gpu1/hold/", {"reason": "driver", "minutes": "240"})
    problem = {"code": "no_data", "text": "nothing can be read (driver)"}
    HostStatus.objects.update(health=[problem])
    assert problem["text"] in text_of(admin.get("/manage/"))


def test_all_hosts_are_held_and_resumed(admin, host):
    build.host("gpu2")
    response = admin.post("/manage/hold/", {"reason": "fire drill", "minutes": "30"}, follow=True)
    assert "2 hosts are held until " in text_of(response)
    assert set(holds_read.rows(now=clock.now())) == {"gpu1", "gpu2"}
    assert "2 hosts act again." in text_of(admin.post("/manage/resume/", follow=True))


@pytest.mark.parametrize("path", ["/manage/hold/", "/manage/hosts/gpu1/hold/"])
def test_a_hold_needs_its_reason(admin, host, path):
    response = admin.post(path, {"reason": " ", "minutes": "30"})
    assert response.status_code == 400
    assert "Nothing was changed." in text_of(response)
    # The page that refuses stands at the form's own address, and is read anew from there.
    assert admin.get(path, follow=True).status_code == 200
    assert "This field is required." in text_of(response)
    assert not holds_read.in_force(now=clock.now()).exists()


def test_a_mode_is_changed_and_the_trail_says_by_whom(admin, host):
    response = admin.post(
        "/manage/hosts/gpu1/mode/", {"mode": "warn", "seen": seen(host)}, follow=True
    )
    assert "gpu1 is asked to warn from now on." in text_of(response)
    assert "Ada switched it from observe to warn." in text_of(response)
    host.refresh_from_db()
    assert host.mode == "warn"


def test_of_two_operators_who_change_it_at_once_the_second_is_told_so(admin, host):
    before = seen(host)
    Host.objects.update(mode="warn")
    response = admin.post(
        "/manage/hosts/gpu1/mode/", {"mode": "observe", "seen": before}, follow=True
    )
    assert "Somebody changed gpu1 in the meantime" in text_of(response)
    host.refresh_from_db()
    assert host.mode == "warn"


def test_the_way_to_enforce_leads_through_the_preview(admin, host):
    response = admin.post("/manage/hosts/gpu1/mode/", {"mode": "enforce", "seen": seen(host)})
    assert response.url == "/manage/hosts/gpu1/enforce/"
    host.refresh_from_db()
    assert host.mode == "observe"


def used(device, *users, at=None):
    now = at or clock.now()
    processes = tuple(
        ProcessUse(pid=pid, uid=uid, unix_name=name, started=now - timedelta(hours=5))
        for pid, uid, name in users
    )
    sample = Sample(uuid=device.uuid, at=now, processes=processes)
    value = {
        "uuid": device.uuid,
        "utilization_percent": 0,
        "verdict": {"code": "free", "text": "Free"},
    }
    livestore.breaker.reset()
    livestore.publish([value], now=now, samples=[sample])


def field(response, name):
    html = response.content.decode()
    return re.search(rf'name="{name}" value="([^"]*)"', html).group(1)


def test_the_preview_names_person_device_processes_and_why(admin, host, quiet_redis):
    device = build.device(host, index=3, model="A100")
    bob = build.user("bob", display_name="Bob Okafor")
    build.account(bob, host, unix_name="bokafor")
    alice = build.user("alice", display_name="Alice Weber")
    build.account(alice, host)
    start = clock.now() + timedelta(hours=2)
    build.booking(device, owner=alice, start=start)
    used(device, (4711, 1001, "bokafor"), (4712, 1001, "bokafor"))
    text = text_of(admin.get("/manage/hosts/gpu1/enforce/"))
    assert "1 person is on its devices without a booking" in text
    assert "Bob Okafor bokafor A100 · 3 4711, 4712" in text
    assert "Alice Weber has booked it" in text
    assert "or for 72 h" in text


def test_whoever_has_booked_the_device_is_not_in_it(admin, host, quiet_redis):
    device = build.device(host)
    alice = build.user("alice")
    build.account(alice, host)
    build.booking(device, owner=alice, start=clock.now() - timedelta(hours=1), hours=24 * 29 + 23)
    used(device, (1, 1001, "alice"))
    text = text_of(admin.get("/manage/hosts/gpu1/enforce/"))
    assert "their own booking ends" in text
    used(device)
    assert "Everybody on its devices has a booking, or nobody is there." in text_of(
        admin.get("/manage/hosts/gpu1/enforce/")
    )


def test_the_switch_is_made_as_it_was_seen(admin, host, quiet_redis):
    device = build.device(host)
    used(device, (1, 1001, "bob"))
    page = admin.get("/manage/hosts/gpu1/enforce/")
    form = {name: field(page, name) for name in ("seen", "foreseen")}
    response = admin.post("/manage/hosts/gpu1/enforce/", form, follow=True)
    assert "gpu1 enforces." in text_of(response)
    host.refresh_from_db()
    assert host.mode == "enforce"


def test_a_preview_that_is_no_longer_so_is_shown_anew_and_switches_nothing(
    admin, host, quiet_redis
):
    device = build.device(host)
    used(device, (1, 1001, "bob"))
    page = admin.get("/manage/hosts/gpu1/enforce/")
    form = {name: field(page, name) for name in ("seen", "foreseen")}
    used(device, (1, 1001, "bob"), (2, 1002, "eve"))
    response = admin.post("/manage/hosts/gpu1/enforce/", form)
    assert response.status_code == 409
    assert "What you saw is no longer so; nothing was switched." in text_of(response)
    assert "eve" in text_of(response)
    host.refresh_from_db()
    assert host.mode == "observe"


def test_a_preview_says_how_old_its_data_is(admin, host, quiet_redis):
    device = build.device(host)
    assert "There is no data from this host." in text_of(admin.get("/manage/hosts/gpu1/enforce/"))
    used(device, (1, 1001, "bob"), at=clock.now() - timedelta(minutes=12))
    text = text_of(admin.get("/manage/hosts/gpu1/enforce/"))
    assert "The data is up to 12 min old" in text
    assert "Switch to enforce all the same" in text


def test_devices_that_cannot_be_read_are_named(admin, host, quiet_redis):
    build.device(host, index=0, model="A100")
    assert "Who uses these cannot be read: A100 · 0" in text_of(
        admin.get("/manage/hosts/gpu1/enforce/")
    )


SETTINGS = {
    "grace_s": "90",
    "kill_budget": "12",
    "unbooked_use": "allow",
    "always_open_uids": "997, 998",
}


def test_settings_are_saved_and_empty_ones_are_the_defaults(admin, host):
    host.settings = {"sample_s": 5, "adopt_h": 24}
    host.save()
    admin.post("/manage/hosts/gpu1/settings/", {**SETTINGS, "seen": seen(host)})
    host.refresh_from_db()
    assert host.settings == {
        "sample_s": 5,
        "grace_s": 90.0,
        "kill_budget": 12,
        "unbooked_use": "allow",
        "always_open_uids": [997, 998],
    }


def test_the_form_says_the_defaults_and_the_units(admin, host):
    html = admin.get("/manage/hosts/gpu1/").content.decode()
    assert 'placeholder="default 60"' in html
    assert 'placeholder="default 72"' in html
    assert "hours for which jobs older than the switch to enforce may stay" in html


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"grace_s": "-1"}, "greater than or equal to 0"),
        ({"grace_s": "1e6"}, "less than or equal to 86400"),
        ({"exempt_uids": "root"}, "Not a user id: root."),
        ({"exempt_uids": "4294967295"}, "Not a user id: 4294967295."),
        ({"forced_displays": "GPU-elsewhere"}, "GPU-elsewhere is not one of the available choices"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_words(admin, host, wrong, sentence):
    build.device(host)
    response = admin.post("/manage/hosts/gpu1/settings/", {**SETTINGS, **wrong, "seen": seen(host)})
    assert response.status_code == 400
    assert sentence in text_of(response)
    host.refresh_from_db()
    assert host.settings == {}


def test_a_device_that_was_looked_at_is_marked_as_fine(admin, host):
    device = build.device(host, index=0, model="A100", state="needs_attention")
    assert "Mark as fine" in text_of(admin.get("/manage/hosts/gpu1/"))
    response = admin.post("/manage/hosts/gpu1/fine/", {"device": device.uuid}, follow=True)
    assert "Ada marked A100 · 0 (gpu1) as fine." in text_of(response)
    device.refresh_from_db()
    assert device.state == Device.State.OK


def test_a_lost_device_is_not_marked_as_fine(admin, host):
    device = build.device(host, state="lost")
    admin.post("/manage/hosts/gpu1/fine/", {"device": device.uuid})
    device.refresh_from_db()
    assert device.state == Device.State.LOST
