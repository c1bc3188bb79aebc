#!/usr/bin/env python3
"""Runs the code of the book: book_test.py [--timer BINARY] [PAGE…].

Each page gets a `timer dev` of its own, in a directory of its own. Its blocks of `sh` are one script and its blocks of `python` programs,
run in their order; `curl` fails where the service refuses. What stands in the book as http://127.0.0.1:8080 is that service, 9000 is a free
port, and API_KEY, TIMER_URL, RECEIVER and SIGNING_SECRET are set. After the language, with commas between, a block may have marks:

  no-run       it is not run: it needs what no test has (a cluster, a package, another database); the count is printed
  example      it is a file of examples/, which `make sdk-test` runs
  background   it goes on until the page has ended

A page with the comment `<!-- needs: nats -->` gets a NATS server with JetStream, and a service with the command consumer. Blocks of `json`
without an ellipsis must be JSON. A block of any other programming language must have a mark, an unknown language is refused, and so are
more blocks that are not run than NO_RUN_MAX.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from book_text import Block, blocks

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ROOT / "docs/book/src"
LANGUAGES = {"sh", "python", "typescript", "javascript", "go", "java", "rust", "sql", "http"}
# What is no program: a block of any other language is refused, because a typing error would keep it from being run.
PLAIN = {"text", "json"}
RUN = {"sh", "python"}
# A block that no test runs is true only until the next change. Mark another one only where nothing else can be done, and then raise this.
NO_RUN_MAX = 22
MARKS = {"no-run", "example", "background"}
PAGE_TIME_MAX = 90
AT_ONCE = 4
# What is refused must not look like what was done.
PRELUDE = """set -euo pipefail
curl() { command curl --fail-with-body --max-time 30 "$@"; }
background=()
"""
# What goes on in the background may be at work still, but it must not have failed.
CODA = """
for process in ${background[@]+"${background[@]}"}; do
  kill -0 "$process" 2>/dev/null || wait "$process"
done
"""


class Failed(Exception):
    pass


def pages() -> list[pathlib.Path]:
    """Every page that may have code, in the order of the book."""
    names = re.findall(r"\]\(([\w/-]+\.md)\)", (SOURCES / "SUMMARY.md").read_text())
    return [ROOT / "README.md", *(SOURCES / name for name in names)]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is not None


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and what it has started: each has a process group of its own."""
    if not has_ended(process):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Page:
    def __init__(self, file: pathlib.Path, timer: pathlib.Path) -> None:
        self.file, self.timer, self.text = file, timer, file.read_text()
        self.blocks = list(blocks(self.text))
        self.processes: list[subprocess.Popen[bytes]] = []
        self.url = ""

    def marked(self, mark: str) -> list[Block]:
        return [block for block in self.blocks if mark in block.marks and block.language in LANGUAGES]

    def to_run(self) -> list[Block]:
        return [block for block in self.blocks if block.language in RUN and not {"no-run", "example"} & set(block.marks)]

    def check(self) -> None:
        """What can be said of the blocks without running them."""
        for block in self.blocks:
            if block.language not in LANGUAGES | PLAIN:
                raise Failed(f"line {block.line}: {block.language or 'a block without a language'} is not known here: {', '.join(sorted(LANGUAGES | PLAIN))}")
            if unknown := set(block.marks) - MARKS:
                raise Failed(f"line {block.line}: {', '.join(sorted(unknown))} is no mark")
            is_left = not {"no-run", "example"} & set(block.marks)
            if block.language in LANGUAGES - RUN and is_left:
                raise Failed(f"line {block.line}: {block.language} is not run here: mark it as an example, or no-run")
            if block.language == "json" and "…" not in block.code:
                try:
                    json.loads(block.code)
                except ValueError as error:
                    raise Failed(f"line {block.line}: {error}") from error

    def start(self, command: list[str], home: pathlib.Path, environment: dict[str, str], output: str) -> subprocess.Popen[bytes]:
        with (home / output).open("wb") as out:
            process = subprocess.Popen(command, cwd=home, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        self.processes.append(process)
        return process

    def start_nats(self, home: pathlib.Path, environment: dict[str, str]) -> None:
        program = next((str(path) for path in ROOT.glob("target/tools/nats/bin/nats-server")), shutil.which("nats-server"))
        if program is None:
            raise Failed("there is no nats-server: scripts/setup.sh installs one")
        port = free_port()
        self.start([program, "-js", "-a", "127.0.0.1", "-p", str(port), "-sd", str(home / "nats")], home, environment, "nats.log")
        environment |= {"NATS_URL": f"nats://127.0.0.1:{port}", "TIMER_BROKER": "nats"}

    def start_timer(self, home: pathlib.Path, environment: dict[str, str]) -> None:
        ready = home / "ready"
        with ready.open("wb") as out, (home / "timer.log").open("wb") as log:
            command = [str(self.timer), "dev", "--ready-json", "--port", "0"]
            self.processes.append(subprocess.Popen(command, cwd=home, env=environment, stdout=out, stderr=log, start_new_session=True))
        for _ in range(600):
            if b"\n" in ready.read_bytes():
                break
            if has_ended(self.processes[-1]):
                break
            time.sleep(0.05)
        try:
            said = json.loads(ready.read_bytes())
        except ValueError as error:
            raise Failed(f"timer dev did not start:\n{(home / 'timer.log').read_text()}") from error
        self.url = said["url"]
        environment |= {"TIMER_URL": self.url, "API_KEY": said["api_key"], "RECEIVER": said["receiver"]}
        environment |= {"SIGNING_SECRET": said["signing_secret"]}

    def script(self, home: pathlib.Path, nats: str | None) -> str:
        """All blocks as one script, with a line on standard error before each, by which a failure finds its block."""
        parts = [PRELUDE]
        port = free_port()
        for block in self.to_run():
            code = re.sub(r"http://(127\.0\.0\.1|localhost):8080", self.url, block.code)
            code = code.replace("nats://127.0.0.1:4222", nats or "nats://127.0.0.1:4222").replace("9000", str(port))
            parts.append(f"echo 'line {block.line}' >&2\n")
            if block.language == "python":
                program = home / f"block-{block.line}.py"
                program.write_text(code)
                code = f"python3 {program}\n"
            parts.append(f"{{ {code.strip()}\n}} &\nbackground+=($!)\n" if "background" in block.marks else code)
        return "".join([*parts, CODA])

    def run(self) -> None:
        self.check()
        if not self.to_run():
            return
        with tempfile.TemporaryDirectory(prefix="timer-book-") as name:
            home = pathlib.Path(name)
            try:
                self.run_in(home)
            finally:
                for process in reversed(self.processes):
                    stop(process)

    def run_in(self, home: pathlib.Path) -> None:
        (home / "bin").mkdir()
        (home / "bin/timer").symlink_to(self.timer)
        (home / "examples").symlink_to(ROOT / "examples")
        packages = [ROOT / "sdks/python/src", ROOT / "target/tools/python"]
        environment = {"PATH": f"{home / 'bin'}:{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8"}
        environment["PYTHONPATH"] = os.pathsep.join(map(str, packages))
        if "<!-- needs: nats -->" in self.text:
            self.start_nats(home, environment)
        self.start_timer(home, environment)
        (home / "page.sh").write_text(self.script(home, environment.get("NATS_URL")))
        page = self.start(["bash", "page.sh"], home, environment, "output")
        try:
            status = page.wait(PAGE_TIME_MAX)
        except subprocess.TimeoutExpired:
            status = f"not within {PAGE_TIME_MAX} s"
        if status != 0:
            output = (home / "output").read_text(errors="replace")
            raise Failed(f"ended with {status}:\n{output[-3000:]}")


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--timer", type=pathlib.Path, default=ROOT / "target/debug/timer")
    options.add_argument("pages", type=pathlib.Path, nargs="*")
    given = options.parse_args()
    began = time.monotonic()
    chosen = [Page(file.resolve(), given.timer.resolve()) for file in given.pages or pages()]
    failed = False
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for page, future in [(page, pool.submit(page.run)) for page in chosen]:
            try:
                future.result()
            except Failed as error:
                failed = True
                print(f"{page.file.relative_to(ROOT)}: {error}", file=sys.stderr)
    counts = {
        "run": sum(len(page.to_run()) for page in chosen),
        "examples": sum(len(page.marked("example")) for page in chosen),
        "not run": sum(len(page.marked("no-run")) for page in chosen),
    }
    told = ", ".join(f"{count} {what}" for what, count in counts.items())
    if counts["not run"] > NO_RUN_MAX:
        failed = True
        print(f"{counts['not run']} blocks of the book are not run, and {NO_RUN_MAX} is the most that is allowed", file=sys.stderr)
    print(f"{len(chosen)} pages, blocks of code: {told}; {time.monotonic() - began:.0f} s")
    sys.exit(failed)


if __name__ == "__main__":
    main()
