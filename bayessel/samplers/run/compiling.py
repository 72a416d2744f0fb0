"""The lock that is held while functions are compiled."""

from __future__ import annotations

import threading

#: PyTensor changes its configuration while it compiles, for all threads, and two at a time leave it changed.
compiler = threading.RLock()
