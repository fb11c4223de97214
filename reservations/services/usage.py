"""What hosts measure: their heartbeat, and what it means when there is none."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from django.db import transaction

from reservations import livestore
from reservations.core.errors import Forbidden
from reservations.core.wire import MAX_SKEW_S, HostSettings, Sample, Samples, SamplesAnswer
from reservations.models import Device, Host, HostStatus
from reservations.services import audit, notices, plans
from reservations.services.actors import BERTH
from reservations.services.hosts import host_actor
from reservations.services.live import LiveView

SILENT_AFTER = timedelta(seconds=60)


def heartbeat(host: Host, samples: Samples, *, now: datetime) -> SamplesAnswer:
    """Note that the host lives, pass its readings on, and say what it should look at next.

    Raises:
        Forbidden: a reading of another host's device.
    """
    uuids = {sample.uuid for sample in samples.devices}
    if Device.objects.filter(uuid__in=uuids).exclude(host=host).exists():
        raise Forbidden("One of these devices belongs to another host.")
    _note_status(host, samples, now=now)
    plan = plans.plan_for(host, now=now)
    watched = _show(host, samples.devices, rules=plan.settings, now=now)
    return SamplesAnswer(plan_etag=plan.etag, server_time=now, watched=watched)


def flag_silent_hosts(*, now: datetime) -> int:
    """Say, once for each silence, which hosts have not been heard of for a minute; how many."""
    flagged = 0
    silent = HostStatus.objects.filter(last_seen__lte=now - SILENT_AFTER, silent_since=None)
    for status in silent.select_related("host"):
        flagged += _flag(status, now=now)
    return flagged


def _flag(status: HostStatus, *, now: datetime) -> bool:
    host, last_seen = status.host, status.last_seen
    with transaction.atomic():
        # A heartbeat or another worker may have been quicker.
        same = HostStatus.objects.filter(pk=host.pk, last_seen=last_seen, silent_since=None)
        if not same.update(silent_since=now):
            return False
        why = f"last heard of at {last_seen:%Y-%m-%d %H:%M:%S} UTC"
        audit.record("host_silent", actor=BERTH, now=now, host=host, why=why)
        notices.tell_operators(
            "host_silent",
            f"{host.name} is silent: {why}. It goes on with its stored plan, but nobody can see that. "
            f"Look at its worker: berth-host status.",
            key=f"host_silent:{host.pk}:{last_seen:%Y%m%dT%H%M%S.%f}",
            now=now,
        )
    _show(host, (), rules=HostSettings(), now=now)
    return True


def _note_status(host: Host, samples: Samples, *, now: datetime) -> None:
    _tell_skew(host, samples.clock_offset_s, now=now)
    said = {
        "last_seen": now,
        "clock_offset_s": samples.clock_offset_s,
        "agent_version": samples.agent_version,
        "mode": samples.mode,
        "health": [msgspec.to_builtins(problem) for problem in samples.health],
    }
    with transaction.atomic():
        before, _ = HostStatus.objects.get_or_create(host=host)
        HostStatus.objects.filter(pk=host.pk).update(**said)
        returned = HostStatus.objects.filter(pk=host.pk, silent_since__isnull=False)
        if before.silent_since and returned.update(silent_since=None):
            why = f"silent since {before.silent_since:%Y-%m-%d %H:%M:%S} UTC"
            audit.record("host_back", actor=host_actor(host), now=now, host=host, why=why)
            notices.tell_operators(
                "host_back",
                f"{host.name} is back.",
                key=f"host_back:{host.pk}:{before.silent_since:%Y%m%dT%H%M%S.%f}",
                now=now,
            )


def _tell_skew(host: Host, offset_s: float | None, *, now: datetime) -> None:
    if offset_s is None or abs(offset_s) <= MAX_SKEW_S:
        return
    text = f"The clock of {host.name} is {offset_s:+.1f} s off. Berth goes by the server's; set up NTP."
    notices.tell_operators("clock_skew", text, key=f"clock_skew:{host.pk}:{now:%Y-%m-%d}", now=now)


def _show(host: Host, samples: Sequence[Sample], *, rules: HostSettings, now: datetime) -> bool:
    """Pass the devices' values on to live pages; says whether somebody watches."""
    every = list(Device.objects.filter(host=host).select_related("host"))
    gone = [one.uuid for one in every if one.state == Device.State.RETIRED]
    shown = [one for one in every if one.state != Device.State.RETIRED]
    readings = {sample.uuid: sample for sample in samples}
    view = LiveView(host, shown, rules=rules, now=now)
    values = [view.value(device, readings.get(device.uuid)) for device in shown]
    kept = [readings[one.uuid] for one in shown if one.uuid in readings]
    return livestore.publish(values, now=now, gone=gone, samples=kept)
