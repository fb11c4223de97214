"""Rules: one file for each kind. A rule can refuse a booking, in words with figures."""
