"""Whether a failed call is made again, and when."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .errors import TimerError, TooMany, Unavailable, Unreachable

FIRST_PAUSE_SECONDS_MAX = 0.1
PAUSE_SECONDS_MAX = 2.0


@dataclass(slots=True)
class Retries:
    """The tries of one call: at most `left` more of them, none after the `deadline` (in seconds of the monotonic clock)."""

    idempotent: bool
    left: int
    deadline: float
    pause_max: float = FIRST_PAUSE_SECONDS_MAX

    def pause_after(self, error: TimerError, now: float) -> float | None:
        """The seconds to wait before the next try; `None` if there is none. Full jitter keeps clients apart."""
        if not self.idempotent or self.left == 0 or not isinstance(error, (Unreachable, Unavailable, TooMany)):
            return None
        asked = error.retry_after.total_seconds() if error.retry_after else 0.0
        pause = max(asked, random.uniform(0, self.pause_max))
        if now + pause >= self.deadline:
            return None
        self.left -= 1
        self.pause_max = min(2 * self.pause_max, PAUSE_SECONDS_MAX)
        return pause
