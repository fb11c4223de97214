"""Plugins by dotted path, loaded and checked once at start."""
