"""Says of each line of a file whether its signature holds, by an implementation of Standard Webhooks that is not ours."""

import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError


def holds(check):
    try:
        Webhook(check["secret"]).verify(check["body"], check["headers"], json_parse=False)
    except WebhookVerificationError:
        return False
    return True


with open(sys.argv[1], encoding="utf-8") as checks:
    # Line feeds alone end a line: bodies hold everything else.
    for line in checks.read().split("\n"):
        if line:
            print(json.dumps(holds(json.loads(line))))
