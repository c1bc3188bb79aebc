#!/usr/bin/env python3
"""Counts what pending timers or jobs take on PostgreSQL, for Timer Platform and for other systems alike.

    bench/peers/space.py timer=target/release/timer pg-boss graphile-worker [--count 200000] [--payload-bytes 560] [--spread 0]

A page of PostgreSQL has 8 KiB and holds a whole number of rows, so that a few bytes of a payload of one size can decide about a tenth
of a table: `--spread 45` draws sizes from 515 to 605 bytes.

Each subject gets a server of its own. Of several builds of Timer Platform each is a subject: `before=… now=…`. A first process fills
and ends. A second one, which is the worker, is started; then comes a checkpoint, a rest, and the count:

  disk    what the files of the server's databases have more than when they were empty
  memory  the proportional set size (PSS) of all processes of the server and of the worker

Needs Linux, PostgreSQL (`PG_BIN`, or its programs on the PATH or where Debian has them) and, for the others, Node.js with npm. Run as
root it starts PostgreSQL as the user postgres. Everything is in a temporary directory and on 127.0.0.1, and ends with the script.
"""

import argparse
import contextlib
import datetime
import glob
import json
import os
import pathlib
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
# The latest versions at the time of writing; another version is another measurement.
PACKAGES = {"pg-boss": "10.4.2", "graphile-worker": "0.17.3"}
DATABASE = "space"
USER = "bench"
API_KEY = "space-" + "k" * 32
BATCH = 500
READY_SECONDS_MAX = 60
FILL_SECONDS_MAX = 900
STOP_SECONDS_MAX = 60
VACUUM_SECONDS_MAX = 180
MIB = 1 << 20

# The order that `timer bench` sends as well (crates/bench/src/requests.rs); `payload` adds a note up to the wanted size.
ORDER = (
    '"kind":"cart.abandoned","customer":{"id":"c-48151623","locale":"en-GB","segment":"returning","marketing":false},'
    '"items":[{"sku":"TP-1001-BLK","name":"Espresso cup, stoneware, black","quantity":4,"price":"12.50"},'
    '{"sku":"TP-2042-OAK","name":"Serving board, oiled oak, large","quantity":1,"price":"38.90"}],'
    '"total":{"amount":"88.90","currency":"EUR"},"channel":"web","campaign":null,"attempt":1,'
    '"links":{"cart":"https://shop.example/cart/48151623","support":"https://shop.example/help"}'
)


def payload(number: int, size: int) -> str:
    """JSON of exactly this many bytes, of which the shortest is 502."""
    text = f'{{"number":{100_000 + number},{ORDER}}}'
    missing = size - len(text)
    if missing == 0:
        return text
    note = ',"note":""'
    if missing < len(note):
        sys.exit(f"payloads have {len(text)} bytes, or at least {len(text) + len(note)}")
    return f'{text[:-1]},"note":"{"x" * (missing - len(note))}"}}'


def write_jobs(file: pathlib.Path, count: int, size: int, spread: int) -> None:
    """Jobs that are due in one to 24 hours, in no order: one line of JSON each."""
    chance, now = random.Random(7), datetime.datetime.now(datetime.UTC)
    with file.open("w") as lines:
        for number in range(count):
            due = now + datetime.timedelta(seconds=chance.uniform(3_600, 86_400))
            lines.write(f'{{"due":"{due:%Y-%m-%dT%H:%M:%S.%f}Z","payload":{payload(number, chance.randint(size - spread, size + spread))}}}\n')


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def stop(process: subprocess.Popen, by: signal.Signals) -> None:
    process.send_signal(by)
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Server:
    """A fresh PostgreSQL with 2 GiB of shared buffers."""

    def __init__(self, home: pathlib.Path) -> None:
        found = [os.environ.get("PG_BIN"), shutil.which("initdb") and pathlib.Path(shutil.which("initdb")).resolve().parent]
        found += sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
        self.bin = next((pathlib.Path(place) for place in found if place), None) or sys.exit("PostgreSQL is not there: set PG_BIN")
        self.data, self.port = home / "data", free_port()
        self.owner = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(home, user.pw_uid, user.pw_gid)
            self.owner = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        home.chmod(0o755)
        self.log = (home / "server.log").open("w")
        initdb = ["initdb", f"--pgdata={self.data}", f"--username={USER}", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]
        self.run(initdb)
        settings = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": home, "shared_buffers": "2GB"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        program = [str(self.bin / "postgres"), "-D", str(self.data), *options]
        self.process = subprocess.Popen(program, stdout=self.log, stderr=self.log, cwd=home, **self.owner)
        try:
            self.wait_until_ready(home)
            self.query(f"CREATE DATABASE {DATABASE}", "postgres")
        except BaseException:
            self.stop()
            raise

    def wait_until_ready(self, home: pathlib.Path) -> None:
        until = time.monotonic() + READY_SECONDS_MAX
        while subprocess.run([self.bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode:
            if time.monotonic() > until or self.process.poll() is not None:
                sys.exit(f"PostgreSQL does not start: {(home / 'server.log').read_text()}")
            time.sleep(0.1)

    def run(self, command: list[str]) -> None:
        subprocess.run([self.bin / command[0], *command[1:]], check=True, stdout=self.log, stderr=self.log, cwd="/", **self.owner)

    def query(self, sql: str, database: str = DATABASE) -> str:
        psql = [self.bin / "psql", "-XqtA", "-F|", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", database, "-c", sql]
        return subprocess.run(psql, check=True, capture_output=True, text=True).stdout.strip()

    @property
    def url(self) -> str:
        return f"postgres://{USER}@127.0.0.1:{self.port}/{DATABASE}"

    def base_bytes(self) -> int:
        return sum(file.stat().st_size for file in (self.data / "base").rglob("*") if file.is_file())

    def processes(self) -> dict[int, str]:
        """Its processes, and what each says it is."""
        listed = subprocess.run(["ps", "-o", "pid=,args=", "--pid", str(self.process.pid), "--ppid", str(self.process.pid)],
                                check=True, capture_output=True, text=True).stdout
        return {int(line.split(None, 1)[0]): line.split(None, 1)[1] for line in listed.splitlines()}

    def stop(self) -> None:
        stop(self.process, signal.SIGINT)


class Timer:
    """A build of Timer Platform, which calls nobody while its timers are pending."""

    def __init__(self, program: str) -> None:
        self.program = shutil.which(program) or sys.exit(f"{program} is not there")

    @contextlib.contextmanager
    def worker(self, server: Server, home: pathlib.Path):
        self.port = free_port()
        settings = {"DATABASE_URL": server.url, "API_KEY": API_KEY, "BIND": "127.0.0.1", "PORT": str(self.port), "RUST_LOG": "error"}
        process = subprocess.Popen([self.program, "serve"], env={"PATH": os.environ["PATH"], **settings}, cwd=home)
        until = time.monotonic() + READY_SECONDS_MAX
        try:
            while True:
                with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5):
                    break
                if time.monotonic() > until or process.poll() is not None:
                    sys.exit("Timer Platform does not start")
                time.sleep(0.1)
            yield process
        finally:
            stop(process, signal.SIGTERM)

    def fill(self, server: Server, home: pathlib.Path, jobs: pathlib.Path) -> None:
        with self.worker(server, home), jobs.open() as lines:
            batch = []
            for number, line in enumerate(lines):
                # The payload goes on as the bytes that it is.
                due, content = line.rstrip("\n")[:-1].removeprefix('{"due":').split(',"payload":', 1)
                url = f"http://127.0.0.1:9100/hooks/carts/{100_000 + number}"
                batch.append(f'{{"execute_at":{due},"callback":{{"type":"http","url":"{url}","payload":{content}}}}}')
                if len(batch) == BATCH:
                    self.create(batch)
                    batch = []
            if batch:
                self.create(batch)

    def create(self, batch: list[str]) -> None:
        body = f'{{"timers":[{",".join(batch)}]}}'.encode()
        headers = {"X-API-Key": API_KEY, "Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.port}/timers/batch", body, headers), timeout=60) as answer:
            results = json.load(answer)["data"]["results"]
        if len(results) != len(batch) or not all("error" not in result or result["error"] is None for result in results):
            sys.exit(f"a batch was not taken: {results[0]}")

    def count(self, server: Server) -> str:
        return server.query("SELECT count(*) FROM due")


class Node:
    """A library for Node.js, installed from npm into a temporary directory."""

    COUNTS = {
        "pg-boss": "SELECT count(*) FROM pgboss.job WHERE state = 'created' AND name = 'carts'",
        "graphile-worker": "SELECT count(*) FROM graphile_worker.jobs",
    }

    def __init__(self, name: str, modules: pathlib.Path) -> None:
        self.name, self.modules = name, modules

    def process(self, what: str, server: Server, jobs: pathlib.Path | None) -> subprocess.Popen:
        variables = {"PATH": os.environ["PATH"], "DATABASE_URL": server.url, "JOBS": str(jobs), "NODE_ENV": "production"}
        return subprocess.Popen(["node", f"{self.name}.mjs", what], cwd=self.modules, env=variables, stdout=subprocess.DEVNULL)

    def fill(self, server: Server, _home: pathlib.Path, jobs: pathlib.Path) -> None:
        filling = self.process("fill", server, jobs)
        if filling.wait(FILL_SECONDS_MAX):
            sys.exit(f"{self.name} did not take the jobs")

    @contextlib.contextmanager
    def worker(self, server: Server, _home: pathlib.Path):
        process = self.process("work", server, None)
        try:
            yield process
        finally:
            stop(process, signal.SIGTERM)

    def count(self, server: Server) -> str:
        return server.query(self.COUNTS[self.name])


def install(names: list[str], modules: pathlib.Path) -> None:
    for file in (HERE / "space").glob("*.mjs"):
        shutil.copy(file, modules)
    packages = [f"{name}@{PACKAGES[name]}" for name in names]
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", *packages], cwd=modules, check=True)


def pss(process: int) -> tuple[int, int]:
    """The proportional set size of a process in bytes, and how much of it is shared memory."""
    lines = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]
    fields = {name: int(value.split()[0]) * 1024 for name, value in (line.split(":", 1) for line in lines)}
    return fields["Pss"], fields["Pss_Shmem"]


def memory(server: Server, worker: int) -> dict[str, float]:
    processes = server.processes()
    of_server = [pss(process) for process in processes]
    total, shared, of_worker = sum(all for all, _ in of_server), sum(shared for _, shared in of_server), pss(worker)[0]
    sessions = sum(" 127.0.0.1(" in title for title in processes.values())
    return {"shared": shared, "server": total - shared, "sessions": sessions, "worker": of_worker, "memory": total + of_worker}


def wait_for_vacuum(server: Server) -> None:
    """What the server does by itself is no part of what is kept."""
    until = time.monotonic() + VACUUM_SECONDS_MAX
    while any("autovacuum worker" in title for title in server.processes().values()) and time.monotonic() < until:
        time.sleep(1)


def measure(subject: Timer | Node, jobs: pathlib.Path, count: int, rest: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="timer-space-") as place:
        home = pathlib.Path(place)
        server = Server(home)
        try:
            server.query("CHECKPOINT")
            empty = server.base_bytes()
            subject.fill(server, home, jobs)
            if subject.count(server) != str(count):
                sys.exit(f"{count} were created and {subject.count(server)} are pending")
            with subject.worker(server, home) as worker:
                server.query("CHECKPOINT")
                time.sleep(rest)
                wait_for_vacuum(server)
                counted = memory(server, worker.pid)
                server.query("CHECKPOINT")
                counted["disk"] = server.base_bytes() - empty
                counted["relations"] = relations(server)
            return counted
        finally:
            server.stop()


def relations(server: Server) -> list[str]:
    """The largest tables and indexes, in bytes."""
    sql = """SELECT relname, pg_relation_size(oid) FROM pg_class WHERE relnamespace::regnamespace::text !~ '^(pg_|information)'
             AND relkind IN ('r', 'i', 't') AND pg_relation_size(oid) > 1000000 ORDER BY 2 DESC"""
    return server.query(sql).splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subjects", nargs="+", help="NAME=PROGRAM for a build of Timer Platform, pg-boss, graphile-worker")
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--payload-bytes", type=int, default=560)
    parser.add_argument("--spread", type=int, default=0, help="by how much a payload may be shorter or longer")
    parser.add_argument("--rest", type=float, default=100, help="seconds; sessions of Timer Platform end when idle for 60")
    options = parser.parse_args()
    builds = dict(subject.split("=", 1) for subject in options.subjects if "=" in subject)
    peers = [subject for subject in options.subjects if subject in PACKAGES]
    if len(builds) + len(peers) != len(options.subjects):
        parser.error(f"what is measured is NAME=PROGRAM, {' or '.join(PACKAGES)}")
    with tempfile.TemporaryDirectory(prefix="timer-space-jobs-") as place:
        directory = pathlib.Path(place)
        if peers:
            install(peers, directory)
        jobs = directory / "jobs.ndjson"
        write_jobs(jobs, options.count, options.payload_bytes, options.spread)
        spread = f" ± {options.spread}" if options.spread else ""
        print(f"{options.count} pending, payloads of {options.payload_bytes}{spread} bytes, MiB, {datetime.date.today()}\n")
        print("| | buffers and what else is shared | sessions, and other processes of the server | worker | memory | disk |")
        print("|---|---|---|---|---|---|", flush=True)
        largest = []
        for name in options.subjects:
            subject = Node(name, directory) if name in PACKAGES else Timer(builds[name.split("=", 1)[0]])
            name = name.split("=", 1)[0]
            counted = measure(subject, jobs, options.count, options.rest)
            mib = {key: f"{value / MIB:.0f}" for key, value in counted.items() if key not in ("sessions", "relations")}
            title = f"{name} {PACKAGES[name]}" if name in PACKAGES else name
            server = f"{mib['server']} ({counted['sessions']} sessions)"
            print(f"| {title} | {mib['shared']} | {server} | {mib['worker']} | {mib['memory']} | {mib['disk']} |", flush=True)
            largest.append((title, counted["relations"]))
        for title, found in largest:
            print(f"\n{title}, bytes for each: " + ", ".join(
                f"{name} {int(size) / options.count:.0f}" for name, size in (line.split("|") for line in found)))


if __name__ == "__main__":
    main()
