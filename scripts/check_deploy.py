#!/usr/bin/env python3
"""Holds deploy/ against the program: check_deploy.py BINARY RULES_FILE.

Every metric that an alert or the dashboard names must be among those of a started service, every alert must have a test and its section in
docs/book/src/run/runbooks.md, the chart must know every setting, and the image that it is installed with must be the one that a release
pushes. Writes the expressions of the dashboard as rules to RULES_FILE, so that promtool can check their syntax.
"""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
RULES = ROOT / "deploy/prometheus/timer.rules.yml"
DASHBOARD = ROOT / "deploy/grafana/timer.json"
CHART = ROOT / "deploy/helm/timer"
# Settings that the chart makes itself, or that are secret and come from the Secret.
NOT_IN_CONFIG = {
    *("API_KEY", "DATABASE_URL", "PG_PASSWORD", "NATS_PASSWORD", "SIGNING_SECRET", "NATS_URL", "TIMER_BROKER_URL"),
    "OTEL_EXPORTER_OTLP_HEADERS",
    *("PORT", "BIND", "NODE_NAME", "NAMESPACES_FILE", "TIMER_DB_PATH", "TIMER_URL"),
}
# Metrics that exist only with NATS or PostgreSQL, which is not started here: docs/book/src/run/monitoring.md must name them.
ELSEWHERE = ("timer_nats_", "timer_postgres_", "timer_command", "timer_events_")


def metrics_of(binary: str) -> set[str]:
    """The names of the metrics of a service that was started for this."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as home:
        key = "check-deploy-0123456789-0123456789"
        environment = {**os.environ, "API_KEY": key, "PORT": str(port), "BIND": "127.0.0.1"}
        environment["DATABASE_URL"] = f"sqlite://{home}/timer.db"
        command = [pathlib.Path(binary).resolve(), "serve"]
        service = subprocess.Popen(command, env=environment, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            text = read_metrics(port, key)
        finally:
            service.terminate()
            service.wait()
    return set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))


def read_metrics(port: int, key: str) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"X-API-Key": key})
    for _ in range(200):
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.read().decode()
        except OSError:
            time.sleep(0.05)
    sys.exit("the service does not answer")


def expressions() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", [])]


def named_metrics(text: str) -> set[str]:
    names = re.findall(r"\btimer_\w+", text)
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}


def image_faults() -> list[str]:
    """What the chart and the book say about the image, against what the release workflow pushes."""
    release = (ROOT / ".github/workflows/release.yml").read_text()
    pushed = re.search(r'name="([\w.]+)/\$\{GITHUB_REPOSITORY,,\}"', release)
    if not pushed:
        return ["release.yml: the name of the image is not made of a registry and the name of the repository"]
    name = f"{pushed[1]}/OWNER/REPOSITORY"
    files = ("deploy/helm/timer/values.yaml", "deploy/helm/timer/templates/_helpers.tpl", "docs/book/src/run/kubernetes.md")
    return [f"{file} does not say that the image is {name}" for file in files if name not in (ROOT / file).read_text()]


def camel(setting: str) -> str:
    first, *rest = setting.lower().split("_")
    return first + "".join(word.capitalize() for word in rest)


def main(binary: str, rules_file: str) -> None:
    faults = []
    monitoring = (ROOT / "docs/book/src/run/monitoring.md").read_text()
    runbooks = (ROOT / "docs/book/src/run/runbooks.md").read_text()
    rules = RULES.read_text()
    dashboard = expressions()

    known = metrics_of(binary)
    for name in sorted(named_metrics("\n".join([*re.findall(r"expr: [^\n]*(?:\n {10,}[^\n]*)*", rules), *dashboard]))):
        elsewhere = name.startswith(ELSEWHERE) and name in monitoring
        if name not in known and not elsewhere:
            faults.append(f"{name} is no metric of the service")

    headings = {heading.lower() for heading in re.findall(r"^#+ (\w+)$", runbooks, re.MULTILINE)}
    for alert, runbook in re.findall(r"alert: (\w+).*?runbook: docs/book/src/run/runbooks\.md#(\w+)", rules, re.DOTALL):
        if runbook != alert.lower() or runbook not in headings:
            faults.append(f"{alert} has no section in docs/book/src/run/runbooks.md")
    if rules.count("alert: ") != rules.count("runbook: "):
        faults.append("an alert has no runbook")

    tested = set(re.findall(r"alertname: (\w+)", (RULES.parent / "timer.rules.test.yml").read_text()))
    alerts = set(re.findall(r"alert: (\w+)", rules))
    faults += [f"timer.rules.test.yml has no test of {alert}" for alert in sorted(alerts - tested)]

    for original in (RULES, DASHBOARD):
        copy = CHART / "files" / original.name
        if copy.read_text() != original.read_text():
            faults.append(f"{copy.relative_to(ROOT)} differs from {original.relative_to(ROOT)}: copy it")

    settings = set(re.findall(r"^\| `([A-Z_]+)`", (ROOT / "docs/book/src/reference/settings.md").read_text(), re.MULTILINE))
    wanted = {camel(name) for name in settings - NOT_IN_CONFIG}
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]["config"]["properties"]
    for name in sorted(wanted ^ set(schema)):
        faults.append(f"values.schema.json: config.{name} is {'missing' if name in wanted else 'no setting of the program'}")

    version = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    if version and f"appVersion: {version[1]}" not in (CHART / "Chart.yaml").read_text():
        faults.append(f"Chart.yaml: appVersion is not {version[1]}")

    faults += image_faults()

    lines = ["groups:", "  - name: dashboard", "    rules:"]
    for number, expression in enumerate(dashboard):
        plain = expression.replace("$__rate_interval", "5m").replace('"$job"', '".*"').replace('"$instance"', '".*"')
        lines += [f"      - record: dashboard:{number}", f"        expr: {json.dumps(plain)}"]
    pathlib.Path(rules_file).write_text("\n".join(lines) + "\n")

    if faults:
        sys.exit("\n" + "\n".join(faults))


if __name__ == "__main__":
    main(*sys.argv[1:])
