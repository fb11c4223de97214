"""The version that a host names to the control plane."""

VERSION = "0.1.0"
