"""The worker's configuration, what it keeps on disk, and who else hands out the GPUs."""

import re
import stat
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from workers.host import config, fleet
from workers.host.clock import HostClock
from workers.host.doctor.facts import SecretFile, Setup
from workers.host.doctor.reading.files import Roots, text
from workers.host.files import Damaged, read_checked
from workers.host.gates.lease_table import obstacle
from workers.host.plan_store import StoredPlan

ENVIRONMENT_FILE = "berth/host.env"
_SLURM_GPUS = re.compile(
    r"^\s*(?:NodeName=\S+\s+)?(?:Name=gpu\b|AutoDetect=nv)", re.IGNORECASE | re.MULTILINE
)


def read(environ: Mapping[str, str], roots: Roots, wall: Callable[[], datetime]) -> Setup:
    """``environ`` wins over the service's own /etc/berth/host.env."""
    environ = config.environment(environ, roots.etc / ENVIRONMENT_FILE)
    configuration, error = None, ""
    try:
        configuration = config.read(environ)
    except config.ConfigError as found:
        error = str(found)
    folder = Path(environ.get("BERTH_STATE_DIR", roots.var / "lib/berth"))
    plan, plan_error = _plan(folder / "plan.json")
    boot = (text(roots.proc / "sys/kernel/random/boot_id") or "").strip()
    host_clock = HostClock(boot=boot or None, wall=wall)
    if plan is not None:
        host_clock.restore(plan.anchor)
    return Setup(
        vendor=environ.get("BERTH_VENDOR", "nvidia"),
        gate=environ.get("BERTH_GATE", "acl"),
        bpf_obstacle=obstacle(config.slices(environ), mounts=roots.proc / "self/mounts"),
        configuration=configuration,
        configuration_error=error,
        secret=_secret(environ, roots.etc / ENVIRONMENT_FILE),
        plan=plan,
        plan_error=plan_error,
        devices=fleet.remembered(folder / "inventory.json", host_clock.boot_id),
        plan_age_s=(host_clock.now() - plan.as_of).total_seconds() if plan else None,
        clock_offset_s=host_clock.offset_s,
        slurm=_slurm(roots.etc),
        device_plugin=_device_plugin(roots.var / "lib/kubelet/device-plugins"),
    )


def _plan(path: Path) -> tuple[StoredPlan | None, str]:
    """Unlike the agent, the doctor leaves a damaged file where it is."""
    try:
        return read_checked(path, StoredPlan), ""
    except Damaged as error:
        return None, str(error)


def _secret(environ: Mapping[str, str], environment_file: Path) -> SecretFile | None:
    """The file that holds the token, if one does."""
    named = environ.get("BERTH_HOST_TOKEN_FILE")
    if not named and "BERTH_HOST_TOKEN" not in config.environment({}, environment_file):
        return None
    path = Path(named) if named else environment_file
    try:
        found = path.stat()
    except OSError:
        return None
    return SecretFile(path=path, mode=stat.S_IMODE(found.st_mode), uid=found.st_uid)


def _slurm(etc: Path) -> str:
    """The gres.conf that hands out GPUs, or ""."""
    for folder in ("slurm", "slurm-llnl"):
        if _SLURM_GPUS.search(text(etc / folder / "gres.conf") or ""):
            return f"/etc/{folder}/gres.conf"
    return ""


def _device_plugin(folder: Path) -> str:
    return next((path.name for path in sorted(folder.glob("*nvidia*.sock"))), "")
