#!/usr/bin/env python3
"""Runs what `helm test` runs, without a cluster: check_helm_test.py BINARY BUSYBOX RENDERED_CHART.

The script of the test pod is taken from the rendered chart and run by BusyBox, whose image the pod has, against a service of this machine.
"""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import yaml

KEY = "check-helm-test-0123456789-0123456789"
TIMEOUT_SECONDS = 60


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def script_of(rendered: str) -> str:
    objects = yaml.safe_load_all(pathlib.Path(rendered).read_text(encoding="utf-8"))
    pods = [each for each in objects if each and each["kind"] == "Pod"]
    assert len(pods) == 1, "the chart has one test"
    container = pods[0]["spec"]["containers"][0]
    assert container["image"].startswith("busybox:") and container["command"] == ["sh", "-euc"], container
    return container["args"][0]


def wait_until_healthy(port: int) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
                return
        except OSError:
            time.sleep(0.05)
    sys.exit("the service is not healthy in time")


def main(binary: str, busybox: str, rendered: str) -> None:
    script, port = script_of(rendered), free_port()
    with tempfile.TemporaryDirectory() as home:
        programs = pathlib.Path(home, "bin")
        programs.mkdir()
        for name in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
            (programs / name).symlink_to(pathlib.Path(busybox).resolve())
        # A pod has ports and a /tmp of its own, and its processes end with it.
        for old, new in {"-p 8000": f"-p {(receiver := free_port())}", ":8000/": f":{receiver}/", "/tmp": home}.items():
            assert old in script, f"the test has no {old}"
            script = script.replace(old, new)
        settings = {"API_KEY": KEY, "PORT": str(port), "BIND": "127.0.0.1", "DATABASE_URL": f"sqlite://{home}/timer.db"}
        quiet = {"cwd": home, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        service = subprocess.Popen([str(pathlib.Path(binary).resolve()), "serve"], env={**os.environ, **settings}, **quiet)
        try:
            wait_until_healthy(port)
            environment = {"PATH": str(programs), "API_KEY": KEY, "POD_IP": "127.0.0.1", "URL": f"http://127.0.0.1:{port}"}
            command = [str(programs / "sh"), "-euc", script.replace("httpd ", "httpd -f ").replace(f"-h {home}\n", f"-h {home} &\n")]
            test = subprocess.Popen(command, cwd=home, env=environment, start_new_session=True, stdout=subprocess.PIPE, text=True)
            try:
                # Its receiver goes on and keeps the pipe open, so the end of the output is not waited for.
                assert test.wait(TIMEOUT_SECONDS) == 0, os.read(test.stdout.fileno(), 65_536).decode()
            finally:
                os.killpg(test.pid, signal.SIGKILL)
        finally:
            service.terminate()
            service.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
