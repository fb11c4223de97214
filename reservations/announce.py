"""The only door to Channels and to the broker. Always on commit, and never in the way.

A frozen Redis held a direct send for more than 25 s, so announcing only appends to a bounded
in-process queue that one thread drains with short socket limits and no retries. What it carries are
hints: a browser that missed one refetches, an agent asks at its next heartbeat anyway.
"""
