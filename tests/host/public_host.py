"""A host as the public file shows it, for tests of those who read it."""

from datetime import UTC, datetime, timedelta

from workers.host.public import PublicDevice, PublicHost, PublicProcess

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
GIB = 2**30


def device(index=0, **fields):
    known = {
        "uuid": f"GPU-{index}",
        "index": index,
        "kind": "gpu",
        "model": "NVIDIA A100-SXM4-80GB",
        "bus_id": f"00000000:0{index}:00.0",
        "health": "ok",
        "verdict": "in_use",
        "verdict_text": "In use by alice",
        "memory_total_bytes": 80 * GIB,
        "memory_used_bytes": 30 * GIB,
        "memory_reserved_bytes": GIB,
        "utilization_percent": 93.4,
        "temperature_c": 65.0,
        "power_w": 301.234,
        "power_limit_w": 400.0,
        "held_by": ("alice",),
        "booked_by": ("alice",),
        "booked_until": NOON + timedelta(hours=2),
        "processes": (PublicProcess(pid=4711, user="alice", memory_bytes=29 * GIB),),
    }
    return PublicDevice(**{**known, **fields})


def closed(index=1):
    """A device of which nothing is known."""
    return PublicDevice(
        uuid=f"GPU-{index}", index=index, kind="gpu", model="NVIDIA A100-SXM4-80GB", bus_id="",
        health="unknown", verdict="no_data", verdict_text="No data yet",
    )  # fmt: skip


def host(*devices, **fields):
    known = {"at": NOON, "host": "gpu-01", "url": "https://berth.example", "mode": "enforce"}
    return PublicHost(**{**known, "devices": devices, **fields})
