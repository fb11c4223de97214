"""Prints what the NVIDIA vendor reads, as JSON: for libraries that must not meet in one process."""

import sys

import msgspec

from workers.host.clock import HostClock
from workers.host.vendors.nvidia import NvidiaVendor

if __name__ == "__main__":
    vendor = NvidiaVendor(HostClock())
    devices = vendor.devices()
    samples = [vendor.sample(device.uuid) for device in devices]
    sys.stdout.write(msgspec.json.encode({"devices": devices, "samples": samples}).decode())
