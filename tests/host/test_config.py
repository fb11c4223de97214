import pytest

from reservations.core.wire import HostSettings
from tests.host.clocks import Hands
from workers.host import assembly, config
from workers.host.config import ConfigError, LocalLimits

RIGHT = {
    "BERTH_HOST_NAME": "gpu-01",
    "BERTH_URL": "https://berth.example/",
    "BERTH_HOST_TOKEN": "secret",
}


def test_the_smallest_environment_is_enough():
    read = config.read(RIGHT)

    assert (read.host, read.url, read.token) == ("gpu-01", "https://berth.example", "secret")
    assert (read.vendor, read.gate, read.redis_url) == ("nvidia", "acl", "")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BERTH_HOST_NAME", ""),
        ("BERTH_HOST_NAME", "two words"),
        ("BERTH_URL", ""),
        ("BERTH_URL", "http://berth.example"),
        ("BERTH_URL", "http://127.0.0.1.example"),
        ("BERTH_URL", "ftp://127.0.0.1"),
        ("BERTH_HOST_TOKEN", ""),
        ("BERTH_HOST_TOKEN", "line\nbreak"),
        ("BERTH_HOST_TOKEN_FILE", "/not/there"),
        ("BERTH_LIMITS", "/not/there"),
    ],
)
def test_a_wrong_value_stops_the_start_and_is_named(name, value):
    with pytest.raises(ConfigError, match=name):
        config.read({**RIGHT, name: value})


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "http://[::1]:8000", "http://localhost"])
def test_plain_http_is_accepted_on_loopback(url):
    assert config.read({**RIGHT, "BERTH_URL": url}).url == url


def test_the_token_may_lie_in_a_file(tmp_path):
    path = tmp_path / "token"
    path.write_text("from a file\n")

    read = config.read({**RIGHT, "BERTH_HOST_TOKEN_FILE": str(path)})

    assert read.token == "from a file"


def test_the_local_file_tightens_and_never_loosens(tmp_path):
    path = tmp_path / "host.toml"
    path.write_text('mode = "warn"\nmanaged = ["GPU-1", "GPU-9"]\nexempt_uids = [5]\n')
    local = config.read({**RIGHT, "BERTH_LIMITS": str(path)}).local

    enforcing = local.tighten(
        HostSettings(mode="enforce", managed=("GPU-1", "GPU-2"), exempt_uids=(7,))
    )
    observing = local.tighten(HostSettings(mode="observe"))

    assert enforcing.mode == "warn"
    assert enforcing.managed == ("GPU-1",)
    assert enforcing.exempt_uids == (5, 7)
    assert observing.mode == "observe"
    settings = HostSettings(mode="enforce", managed=("GPU-1",))
    assert LocalLimits().tighten(settings) == settings


@pytest.mark.parametrize("content", ['mode = "loose"', "grace_s = 9", "not toml at all ["])
def test_a_local_file_that_cannot_be_understood_stops_the_start(tmp_path, content):
    path = tmp_path / "host.toml"
    path.write_text(content)

    with pytest.raises(ConfigError, match=r"host\.toml"):
        config.read({**RIGHT, "BERTH_LIMITS": str(path)})


@pytest.mark.parametrize("name", ["amd", "no.such.module:vendor", "json:no_such_function"])
def test_an_unknown_vendor_or_gate_is_named(name, tmp_path):
    read = config.read({**RIGHT, "BERTH_VENDOR": name, "BERTH_GATE": name})

    with pytest.raises(ConfigError, match="BERTH_VENDOR"):
        assembly.open_vendor(read, Hands().clock())
    with pytest.raises(ConfigError, match="BERTH_GATE"):
        assembly.open_gate(read, ())
