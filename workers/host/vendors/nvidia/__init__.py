"""NVIDIA devices through NVML.

Every figure is asked for on its own: what one driver does not know never hides what it does, and one
device's failure never hides another's.
"""

from workers.host.vendors.nvidia.vendor import NvidiaVendor

__all__ = ["NvidiaVendor"]
