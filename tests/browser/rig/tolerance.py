"""Limits of time as they are promised under SOAK=1, on an idle machine and an optimised build; else longer, for a busy one."""

import os

IS_SOAK = os.environ.get("SOAK") == "1"


def seconds(promised: float) -> float:
    return promised if IS_SOAK else promised * 8
