"""Rasmussen's (1996) figure 5.2: how many per cent of the squared error bagging takes off MARS."""

from __future__ import annotations

SIZES = (64, 128, 256, 512, 1024)

#: rows of the figure: training cases, then pumadyn-8, pumadyn-32, kin-8, kin-32, each in the order fh, fm, nh, nm
_FIGURE = """
64 12.9 20.2 12.1 22.7 21.3 4.3 25.0 28.3 37.3 37.0 20.7 31.3 36.4 26.3 40.1 25.8
128 3.6 15.1 19.0 30.3 32.7 24.2 22.2 -23.9 16.0 17.0 17.6 19.2 27.2 24.1 28.7 28.8
256 4.5 8.4 10.5 17.0 11.4 22.4 9.3 22.5 16.8 13.6 11.6 16.0 8.9 10.8 23.6 21.7
512 5.5 4.4 10.1 13.0 9.0 3.8 10.4 16.8 13.2 13.0 8.3 11.5 3.7 -8.1 12.3 13.0
1024 3.6 5.9 4.0 7.5 2.6 3.8 3.3 5.3 3.8 9.8 9.4 7.7 -3.8 -5.7 6.8 6.1
"""

_TASKS = [
    f"{name}{kind}" for name in ("pumadyn-8", "pumadyn-32", "kin-8", "kin-32") for kind in ("fh", "fm", "nh", "nm")
]

#: (family, training cases) -> per cent
REDUCTION = {
    (task, int(row.split()[0])): float(value)
    for row in _FIGURE.strip().splitlines()
    for task, value in zip(_TASKS, row.split()[1:], strict=True)
}
