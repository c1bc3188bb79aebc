"""The command line of schemathesis, which has no `python -m` of its own."""

import sys

from schemathesis.cli import schemathesis

sys.exit(schemathesis())
