"""Collects the facts of a host, a file for each kind. It changes nothing, but for a trial in /dev."""
