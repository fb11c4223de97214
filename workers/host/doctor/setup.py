"""The worker's configuration, its stored plan and clock, and who else hands out the GPUs."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from reservations.core.wire import MAX_SKEW_S
from workers.host.doctor.facts import Facts, Finding

# The agent hears at least once a minute that its plan still stands.
OLD_PLAN_S = 300.0


def configuration(facts: Facts) -> Iterator[Finding]:
    """A wrong URL (plain http beyond loopback) and a missing token are among the errors."""
    setup = facts.setup
    if setup.configuration is None:
        yield Finding(
            id="configuration",
            level="error",
            text=f"The worker cannot start: {setup.configuration_error}.",
            fix=("edit /etc/berth/host.env; the variables are listed in docs/operations.md",),
        )
        return
    url = setup.configuration.url
    if urlsplit(url).scheme == "https":
        text = f"Berth is asked at {url}, encrypted."
    else:
        text = f"Berth is asked at {url}, on this machine, unencrypted."
    yield Finding(id="url", level="ok", text=text)


def token(facts: Facts) -> Iterator[Finding]:
    if facts.setup.configuration is None:
        return
    file = facts.setup.secret
    if file is None:
        text = "The host's token comes from the environment alone."
        yield Finding(id="token", level="ok", text=text)
    elif file.mode & 0o077 or file.uid != 0:
        yield Finding(
            id="token",
            level="error",
            text=f"{file.path} holds the host's token and has mode {file.mode:04o}, owner "
            f"{file.uid}: whoever reads it can speak for this host.",
            fix=(f"chown root: {file.path}", f"chmod 0600 {file.path}"),
        )
    else:
        text = f"The host's token is in {file.path}, which only root can read."
        yield Finding(id="token", level="ok", text=text)


def plan(facts: Facts) -> Iterator[Finding]:
    setup = facts.setup
    if setup.plan_error:
        yield Finding(
            id="plan",
            level="error",
            text=f"The stored plan cannot be used: {setup.plan_error}. The agent sets it aside and "
            "stops nobody until it has fetched another.",
        )
    elif setup.plan is None or setup.plan_age_s is None:
        yield Finding(
            id="plan",
            level="warning",
            text="There is no stored plan yet: the agent has not heard from Berth.",
            fix=("systemctl start berth-host", "journalctl -u berth-host -n 50"),
        )
    elif setup.plan_age_s > OLD_PLAN_S:
        yield Finding(
            id="plan",
            level="warning",
            text=f"The stored plan was last confirmed {_span(setup.plan_age_s)} ago, not within the "
            "last minute: the agent does not run, or does not reach Berth.",
            fix=("berth-host status", "journalctl -u berth-host -n 50"),
        )
    else:
        mode = setup.plan.plan.settings.mode
        text = f"The stored plan was confirmed {_span(setup.plan_age_s)} ago; mode {mode}."
        yield Finding(id="plan", level="ok", text=text)


def clock(facts: Facts) -> Iterator[Finding]:
    offset_s = facts.setup.clock_offset_s
    if offset_s is None:
        text = "Whether the clock is right is not known: Berth was not heard since the last boot."
        yield Finding(id="clock", level="unknown", text=text)
    elif abs(offset_s) > MAX_SKEW_S:
        way = "ahead of" if offset_s > 0 else "behind"
        yield Finding(
            id="clock",
            level="warning",
            text=f"The clock is {abs(offset_s):.1f} s {way} the server's. Slots keep to the "
            "server's time; people will read another one here.",
            fix=("timedatectl set-ntp true",),
        )
    else:
        text = f"The clock is within {MAX_SKEW_S:.0f} s of the server's."
        yield Finding(id="clock", level="ok", text=text)


def others(facts: Facts) -> Iterator[Finding]:
    """Two who hand out one GPU, each closing what the other opened."""
    setup = facts.setup
    if setup.slurm:
        yield Finding(
            id="slurm",
            level="warning",
            text=f"Slurm hands out GPUs of this host ({setup.slurm}). Those that it has must not be "
            "managed by Berth too.",
            fix=("set `managed by` of those devices to Slurm under /admin/",),
        )
    if setup.device_plugin:
        yield Finding(
            id="kubernetes",
            level="warning",
            text=f"Kubernetes hands out GPUs of this host ({setup.device_plugin}). Those that it "
            "has must not be managed by Berth too.",
            fix=("set `managed by` of those devices to Kubernetes under /admin/",),
        )
    if not setup.slurm and not setup.device_plugin:
        text = "Neither Slurm nor Kubernetes hands out GPUs here."
        yield Finding(id="others", level="ok", text=text)


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{max(0.0, seconds):.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"


CHECKS = (configuration, token, plan, clock, others)
