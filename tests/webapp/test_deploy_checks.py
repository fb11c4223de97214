"""`manage.py check --deploy`: each fault of a site in its exact sentence, with what to write or run."""

import io
import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
import redis
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db.migrations.recorder import MigrationRecorder

from reservations import clock
from reservations.services import pulses
from tests import build, servers
from webapp import deploy_checks

pytestmark = pytest.mark.django_db
LONG = "0123456789" * 6


def said(check):
    return [(fault.msg, fault.hint) for fault in check()]


@pytest.fixture
def site(settings):
    """A site as it should be, as far as settings go."""
    settings.SECRET_KEY = LONG
    settings.BERTH_URL = "https://berth.example"
    settings.HTTPS = True
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    settings.SECURE_HSTS_SECONDS = 31_536_000
    settings.ALLOWED_HOSTS = ["berth.example"]
    settings.SITE_TIME_ZONE = "Europe/Berlin"
    return settings


SETTINGS = [
    (deploy_checks.ask_secret_key, {"SECRET_KEY": "short"},
     "SECRET_KEY is shorter than 50 characters or easily guessed: sessions could be forged.",
     "Write SECRET_KEY= and what this prints: python3 -c 'import secrets; print(secrets.token_urlsafe(50))'"),
    (deploy_checks.ask_secret_key, {"SECRET_KEY": "a" * 60},
     "SECRET_KEY is shorter than 50 characters or easily guessed: sessions could be forged.",
     "Write SECRET_KEY= and what this prints: python3 -c 'import secrets; print(secrets.token_urlsafe(50))'"),
    (deploy_checks.ask_debug, {"DEBUG": True},
     "DEBUG is on: pages would show the site's secrets.", "Write DEBUG = False."),
    (deploy_checks.ask_https, {"BERTH_URL": "http://berth.example", "HTTPS": False},
     "BERTH_URL is http://berth.example: passwords and tokens would cross the network in the open.",
     "End TLS in a proxy (deploy/nginx/berth.conf) and write BERTH_URL=https://NAME."),
    (deploy_checks.ask_https, {"BERTH_URL": "http://127.0.0.1:8000", "HTTPS": False},
     "BERTH_URL is http://127.0.0.1:8000: only people on this machine find the site, and links lead nowhere else.",
     "End TLS in a proxy (deploy/nginx/berth.conf) and write BERTH_URL=https://NAME."),
    (deploy_checks.ask_https, {"SESSION_COOKIE_SECURE": False},
     "Cookies may travel without TLS, or browsers are not told to insist on it.",
     "Leave SESSION_COOKIE_SECURE, CSRF_COOKIE_SECURE and SECURE_HSTS_SECONDS as BERTH_URL sets them."),
    (deploy_checks.ask_allowed_hosts, {"ALLOWED_HOSTS": ["localhost"]},
     "ALLOWED_HOSTS does not name berth.example, where BERTH_URL says the site is: every request is refused.",
     "Write ALLOWED_HOSTS=localhost,berth.example"),
    (deploy_checks.ask_time_zones, {"SITE_TIME_ZONE": "UTC"},
     "SITE_TIME_ZONE is UTC: whoever has chosen no zone of their own reads UTC.",
     "Write SITE_TIME_ZONE=Europe/Berlin, or wherever the site's people live."),
]  # fmt: skip


@pytest.mark.parametrize(("check", "wrong", "text", "hint"), SETTINGS)
def test_a_wrong_setting_is_told_with_what_to_write(site, check, wrong, text, hint):
    assert said(check) == []
    for name, value in wrong.items():
        setattr(site, name, value)
    assert said(check) == [(text, hint)]


@pytest.mark.parametrize("allowed", [".example", "berth.example"])
def test_a_domain_that_covers_the_site_is_enough(site, allowed):
    site.ALLOWED_HOSTS = [allowed]
    assert said(deploy_checks.ask_allowed_hosts) == []


def test_migrations_that_are_missing_are_named():
    found = said(deploy_checks.ask_database)
    assert not any("migrations" in text for text, _ in found)
    MigrationRecorder.Migration.objects.filter(app="reservations", name__startswith="0008").delete()
    assert (
        "1 migrations are not applied: reservations.0008_held_back_opening.",
        "Run: manage.py migrate",
    ) in said(deploy_checks.ask_database)


def test_a_clock_that_differs_from_the_databases_is_told(monkeypatch):
    ahead = clock.now() - timedelta(hours=1)
    monkeypatch.setattr(deploy_checks.clock, "now", lambda: ahead)
    (text,) = [text for text, _ in said(deploy_checks.ask_database) if "clock" in text]
    assert text == (
        "The database's clock is +3600.0 s off from this machine's: slots would begin and end at two times."
    )


class TestRedis:
    def test_one_that_does_not_answer_is_told(self, settings):
        port = servers.free_port()
        settings.REDIS_URL = f"redis://127.0.0.1:{port}/0"
        assert said(deploy_checks.ask_redis) == [
            (
                f"Redis at 127.0.0.1:{port} does not answer: ConnectionError. Pages work, but nothing is "
                "live and hosts hear of changes late.",
                "Start it, or correct REDIS_URL.",
            )
        ]

    @pytest.fixture
    def own(self, settings):
        with servers.redis_server() as url:
            settings.REDIS_URL = url
            yield url.removeprefix("redis://").partition("/")[0]

    def test_one_without_a_password_is_told(self, own):
        assert said(deploy_checks.ask_redis) == [
            (
                f"Redis at {own} lets anybody in without a password.",
                "Load deploy/redis/users.acl and write REDIS_URL=redis://berth:password@…",
            )
        ]

    def test_a_host_without_a_user_of_its_own_is_named(self, own, settings):
        for name in ("gpu1", "gpu2"):
            build.host(name)
        with redis.Redis.from_url(settings.REDIS_URL) as server:
            everything = {"enabled": True, "keys": ["*"], "channels": ["*"]}
            server.acl_setuser("berth", passwords=["+secret"], categories=["+@all"], **everything)
            server.acl_setuser("host-gpu1", enabled=True, passwords=["+other"])
            server.acl_setuser("default", enabled=False)
        settings.REDIS_URL = f"redis://berth:secret@{own}/0"
        assert said(deploy_checks.ask_redis) == [
            (
                f"Redis at {own} has no user host-gpu2: gpu2 hears of changes with its heartbeat alone.",
                "Add a line for gpu2 from deploy/redis/host.acl, then: ACL LOAD",
            )
        ]


def test_static_files_that_are_not_collected_are_told(static_files, monkeypatch):
    assert said(deploy_checks.ask_static_files) == []
    monkeypatch.setattr(deploy_checks.staticfiles_storage, "manifest_name", "elsewhere.json")
    ((text, hint),) = said(deploy_checks.ask_static_files)
    assert text.startswith("Static files are not collected in /")
    assert hint == "Run: manage.py collectstatic --noinput"


def test_parts_that_do_not_run_are_told():
    now = clock.now()
    pulses.beat(pulses.CONTROL, now=now - timedelta(hours=1))
    assert said(deploy_checks.ask_parts) == [
        (
            f"The control worker was last seen at {now - timedelta(hours=1):%Y-%m-%d %H:%M:%S} UTC.",
            "Run: systemctl enable --now berth-control",
        ),
        ("The beat has never been seen.", "Run: systemctl enable --now berth-beat"),
    ]
    for name in (pulses.CONTROL, pulses.BEAT):
        pulses.beat(name, now=now)
    assert said(deploy_checks.ask_parts) == []


def test_a_site_without_operators_is_told():
    assert said(deploy_checks.ask_operators) == [
        (
            "Nobody is an operator: nobody can manage hosts or is told of trouble.",
            "Run: manage.py createsuperuser",
        )
    ]


def test_an_operator_with_the_demos_password_is_told():
    admin = build.operator("admin")
    admin.set_password("admin")
    admin.save()
    assert said(deploy_checks.ask_operators) == [
        (
            "The password of admin, an operator, is the name itself, as in the demo.",
            "Run: manage.py changepassword admin",
        )
    ]


def test_secrets_that_others_can_read_are_told(settings, tmp_path):
    settings.DATA = tmp_path
    assert said(deploy_checks.ask_secrets_on_disk) == []
    path = Path(tmp_path) / "env"
    path.write_text("SECRET_KEY=x\n")
    os.chmod(path, 0o644)
    assert said(deploy_checks.ask_secrets_on_disk) == [
        (f"{path} holds secrets and can be read by others.", f"Run: chmod 600 {path}")
    ]
    os.chmod(path, 0o600)
    assert said(deploy_checks.ask_secrets_on_disk) == []


class TestTheCommand:
    @pytest.fixture(autouse=True)
    def as_a_site_is_started(self, monkeypatch):
        monkeypatch.delenv("DJANGO_ALLOW_ASYNC_UNSAFE", raising=False)

    def test_errors_make_it_fail_and_warnings_do_not(self, site, static_files):
        call_command("check", "--deploy")
        site.SECRET_KEY = "short"
        with pytest.raises(SystemCheckError, match=r"webapp\.D001"):
            call_command("check", "--deploy")

    def test_it_can_answer_in_json(self, site, static_files):
        site.SECRET_KEY = "short"
        out = io.StringIO()
        with pytest.raises(SystemExit) as ended:
            call_command("check", "--deploy", "--json", stdout=out)
        assert ended.value.code == 1
        (error,) = [one for one in json.loads(out.getvalue()) if one["level"] == "error"]
        assert set(error) == {"id", "level", "text", "hint"}
        assert error["id"] == "webapp.D001"

    def test_without_deploy_it_asks_none_of_this(self, site):
        site.SECRET_KEY = "short"
        out = io.StringIO()
        call_command("check", "--json", stdout=out)
        assert json.loads(out.getvalue()) == []
