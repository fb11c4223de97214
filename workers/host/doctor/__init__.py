"""``berth-host doctor``: whether a host can enforce, and what to write where it cannot.

`reading` collects facts and is the only part that touches the machine; `machine`, `driver`, `nodes`,
`displays`, `people` and `setup` judge them, each check a pure function; `report` puts them into words
and an exit status.
"""
