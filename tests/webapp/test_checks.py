"""Settings that would break a promise silently are refused at the start, each with its sentence."""

import pytest
from django.conf import settings as site
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError

REDIS_LAYER = {
    "BACKEND": "channels_redis.core.RedisChannelLayer",
    "CONFIG": {"hosts": ["redis://127.0.0.1:1/0"]},
}
UNFIT = {
    "webapp.E001": {
        "DATABASES": {**site.DATABASES, "default": {**site.DATABASES["default"], "ATOMIC_REQUESTS": True}}
    },
    "webapp.E002": {"ALLOWED_HOSTS": ["berth.example.org", "*"]},
    "webapp.E003": {"CHANNEL_LAYERS": {**site.CHANNEL_LAYERS, "second": REDIS_LAYER}},
}  # fmt: skip


def faults():
    return [fault for fault in run_checks() if fault.id.startswith("webapp.")]


def test_the_settings_as_they_are_pass():
    assert faults() == []


@pytest.mark.filterwarnings("ignore:Overriding setting DATABASES")
@pytest.mark.parametrize("code", sorted(UNFIT))
def test_an_unfit_setting_is_refused_with_one_sentence(code, settings):
    for name, value in UNFIT[code].items():
        setattr(settings, name, value)
    (fault,) = faults()
    assert fault.id == code
    assert fault.msg.endswith(".")
    assert fault.msg.count(". ") == 0
    with pytest.raises(SystemCheckError, match=code):
        call_command("check")


@pytest.mark.parametrize(
    "backend",
    ["channels.layers.InMemoryChannelLayer", "channels_redis.pubsub.RedisPubSubChannelLayer"],
)
def test_other_layers_are_left_alone(backend, settings):
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend}}
    assert faults() == []
