#!/usr/bin/env python3
"""Measures what one tenant's attack does to another tenant.

An innocent tenant registers 100 timers a second, each due two seconds later, and one batch a second, and lists its timers once a
second. It does so without an attack,
and then beside each of these attacks of another tenant, by default at ten times the strength at which it once did harm:

    interim  640 calls to receivers that answer with "100 Continue" without end
    hanging  20,480 receivers, each at an address of its own, that never answer
    names    2,560 host names that no name server resolves
    cancel   320 clients that search 1,000 timers of 60 KiB for some to cancel, all the time
    search   320 clients that search the same timers for metadata that none of them has, all the time
    bodies   160 batches whose bodies come a byte at a time

Prints for each attack how late the innocent tenant's calls arrived, and how long its requests took (from when they were to be sent),
in milliseconds. The service uses a new SQLite file for each, or the database that --database names.

Ends with 1 when a timer of the innocent tenant failed, was not called or was called twice, in any of the runs, and when an attack makes
the innocent tenant's calls later than --tolerated-ms allows: the lateness of 99 of 100, compared with the run without an attack.

Everything stays on the loopback interface. Without --database it runs in a network namespace of its own, with a name server that never
answers; where that is not possible, `names` is left out. Attackers run at low priority (nice): their own CPU time is not measured.
"""

import argparse
import asyncio
import concurrent.futures
import datetime
import http.client
import json
import multiprocessing
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ADMIN_KEY = "fairness-0123456789abcdef0123456789abcdef"
RATE = 100
AHEAD_SECONDS = 2
REQUEST_SECONDS_MAX = 30
WORKERS = 16
# How long calls that are late are waited for, before they count as lost.
LATE_SECONDS_MAX = 60
INSIDE = "FAIRNESS_INSIDE"
# The name of the innocent tenant's receivers inside the network namespace, so that its calls need lookups, too.
INNOCENT_HOST = "innocent.test"
BLACK_HOLE = "127.0.0.53"
processes = multiprocessing.get_context("fork")


# The service


class Service:
    def __init__(self, binary, directory, database):
        self.port = free_port()
        self.log = open(pathlib.Path(directory) / "service.log", "w+", encoding="utf-8")
        where = {"DATABASE_URL": database} if database else {"TIMER_DB_PATH": str(pathlib.Path(directory) / "timers.db")}
        environment = {"PATH": os.environ["PATH"], "API_KEY": ADMIN_KEY, "BIND": "127.0.0.1", "PORT": str(self.port),
                       "MIN_DELAY": "0s", "EGRESS": "private", "RUST_LOG": "error", **where}
        self.process = subprocess.Popen([str(binary), "serve"], env=environment, stdout=self.log, stderr=self.log)
        end = time.monotonic() + 60
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > end:
                self.log.seek(0)
                self.stop()
                sys.exit(f"the service did not start:\n{self.log.read()}")
            time.sleep(0.05)

    def is_ready(self):
        try:
            return request(self.port, ADMIN_KEY, "GET", "/healthz")[0] == 200
        except OSError:
            return False

    def tenant(self, namespace):
        """Issues a key for this namespace."""
        wanted = {"name": namespace, "namespaces": [namespace], "rights": "write"}
        status, text = request(self.port, ADMIN_KEY, "POST", "/keys", wanted)
        if status != 201:
            sys.exit(f"no key for {namespace}: {status} {text!r}")
        return json.loads(text)["data"]["key"]

    def health(self):
        try:
            return json.loads(request(self.port, ADMIN_KEY, "GET", "/healthz")[1]).get("data", {})
        except (OSError, ValueError, http.client.HTTPException):
            return {}

    def count(self, namespace, status, **more):
        """How many timers of a namespace are in one of these statuses."""
        query = urllib.parse.urlencode({"namespace": namespace, "status": status, **more})
        return json.loads(request(self.port, ADMIN_KEY, "GET", f"/timers/count?{query}")[1])["data"]["total"]

    def peak_mib(self):
        lines = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))

    def stop(self):
        self.process.kill()
        self.process.wait()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def request(port, key, method, path, body=None, connection=None):
    connection = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=REQUEST_SECONDS_MAX)
    headers = {"X-API-Key": key, "Content-Type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def instant(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def http_timer(namespace, url, due, **more):
    callback = {"type": "http", "url": url, **more.pop("callback", {})}
    return {**due, "namespace": namespace, "callback": callback, **more}


def register_all(port, key, timers):
    """Registers many timers, a thousand at a time."""
    for start in range(0, len(timers), 1000):
        status, text = request(port, key, "POST", "/timers/batch", {"timers": timers[start:start + 1000]})
        results = json.loads(text).get("data", {}).get("results", [])
        if status != 200 or any(result["status"] != 201 for result in results):
            print(f"a batch of the attack was answered with {status}: {text[:300]!r}", file=sys.stderr)


# The innocent tenant


def sink(pipe):
    """Answers every call with 200, and records how late it is: its path says when it was due."""
    late = []

    class Call(asyncio.Protocol):
        def connection_made(self, transport):
            self.transport, self.read = transport, b""

        def data_received(self, data):
            now = time.time()
            self.read += data
            while (end := self.read.find(b"\r\n\r\n")) >= 0:
                head = self.read[:end].lower()
                length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
                if len(self.read) < end + 4 + length:
                    return
                late.append(now - int(head.split(b" ", 2)[1].strip(b"/")) / 1e6)
                self.read = self.read[end + 4 + length:]
                self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async def serve():
        server = await asyncio.get_running_loop().create_server(Call, "127.0.0.1", 0, backlog=1024)
        pipe.send(server.sockets[0].getsockname()[1])
        while not pipe.poll():
            await asyncio.sleep(0.05)
        pipe.send(late)

    asyncio.run(serve())


def innocent(port, key, host, sink_port, seconds, pipe):
    """Registers timers at a fixed rate, and reports how long that took and what was refused."""
    took, batches, lists, refused, start = [], [], [], [], time.time() + 0.5

    def send(planned, path, body, expected, into, connection, method="POST"):
        try:
            status, _ = request(port, key, method, path, body, connection)
            if status not in expected:
                refused.append(status)
        except (OSError, http.client.HTTPException) as error:
            refused.append(type(error).__name__)
            connection.close()
        into.append(time.time() - planned)

    def singles(worker):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=REQUEST_SECONDS_MAX)
        for number in range(worker, seconds * RATE, WORKERS):
            planned = start + number / RATE
            time.sleep(max(0, planned - time.time()))
            due = planned + AHEAD_SECONDS
            timer = http_timer("innocent", f"http://{host}:{sink_port}/{int(due * 1e6)}", {"execute_at": instant(due)})
            send(planned, "/timers", timer, (201,), took, connection)

    def one_batch_a_second():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=REQUEST_SECONDS_MAX)
        timer = http_timer("innocent", "http://127.0.0.1:9/", {"delay": "10h"}, callback={"payload": "x" * 1500})
        for number in range(seconds):
            planned = start + number
            time.sleep(max(0, planned - time.time()))
            send(planned, "/timers/batch", {"timers": [timer] * 50}, (200,), batches, connection)

    def one_list_a_second():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=REQUEST_SECONDS_MAX)
        for number in range(seconds):
            planned = start + number + 0.5
            time.sleep(max(0, planned - time.time()))
            send(planned, "/timers?limit=50", None, (200,), lists, connection, "GET")

    threads = [threading.Thread(target=singles, args=(worker,)) for worker in range(WORKERS)]
    threads += [threading.Thread(target=one_batch_a_second), threading.Thread(target=one_list_a_second)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    pipe.send((took, batches, lists, refused))


# The attacks. Each runs in a process of its own, reports when it is under way, and is ended by a signal.


def loopback_listener(address, backlog=4096):
    """Listens on this address; on any of the loopback interface, if none is given."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if not address:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
    listener.bind((address, 0))
    listener.listen(backlog)
    return listener


async def serve_for_ever(listeners, talk):
    for listener in listeners:
        await asyncio.start_server(talk, sock=listener)
    await asyncio.Event().wait()


def interim(port, key, strength, ready):
    listeners = [loopback_listener(f"127.0.2.{number}") for number in range(1, 21)]
    flood = b"HTTP/1.1 100 Continue\r\n\r\n" * 2000

    async def talk(_, writer):
        try:
            while True:
                writer.write(flood)
                await writer.drain()
        except OSError:
            writer.close()

    retries = {"max_retries": 1000, "initial_interval": "1s", "max_interval": "1s"}
    urls = ["http://{}:{}/".format(*listener.getsockname()) for listener in listeners]
    timers = [http_timer("greedy", urls[number % len(urls)], {"delay": "1ms"}, callback={"timeout": "60s"}, retry_policy=retries)
              for number in range(64 * strength)]
    threading.Thread(target=lambda: (register_all(port, key, timers), ready.set()), daemon=True).start()
    asyncio.run(serve_for_ever(listeners, talk))


def hanging(port, key, strength, ready):
    listener = loopback_listener("")
    at = listener.getsockname()[1]
    held = []

    async def talk(reader, writer):
        held.append((reader, writer))

    # From 127.1.0.1 upwards.
    hosts = [f"127.{1 + number // 62500}.{number // 250 % 250}.{1 + number % 250}" for number in range(2048 * strength)]
    timers = [http_timer("greedy", f"http://{host}:{at}/", {"delay": "1ms"}, callback={"timeout": "60s"}) for host in hosts]
    threading.Thread(target=lambda: (register_all(port, key, timers), ready.set()), daemon=True).start()
    asyncio.run(serve_for_ever([listener], talk))


def names(port, key, strength, ready):
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind((BLACK_HOLE, 53))
    retries = {"max_retries": 1000, "initial_interval": "1s", "max_interval": "1s"}
    timers = [http_timer("greedy", f"http://name-{number}.test/", {"delay": "1ms"}, callback={"timeout": "60s"}, retry_policy=retries)
              for number in range(256 * strength)]
    register_all(port, key, timers)
    ready.set()
    while True:
        silent.recv(4096)


def search_without_end(port, key, strength, ready, *searched):
    metadata = {"owner": "ada", "pad": "x" * 60 * 1024}
    timer = http_timer("greedy", "http://127.0.0.1:9/", {"delay": "10h"}, metadata=metadata)
    for _ in range(10):
        register_all(port, key, [timer] * 100)
    ready.set()

    def search(number):
        # Many source addresses, so that limits per address do not stop the attack.
        source = (f"127.0.4.{1 + number % 250}", 0)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=REQUEST_SECONDS_MAX, source_address=source)
        while True:
            try:
                status, _ = request(port, key, *searched, connection)
                time.sleep(0 if status == 200 else 0.1)
            except (OSError, http.client.HTTPException):
                connection.close()
                time.sleep(0.1)

    with concurrent.futures.ThreadPoolExecutor(32 * strength) as pool:
        list(pool.map(search, range(32 * strength)))


def cancel(port, key, strength, ready):
    condition = {"namespace": "greedy", "metadata": {"owner": "nobody"}, "expected_max": 10}
    search_without_end(port, key, strength, ready, "POST", "/timers/cancel", condition)


def search(port, key, strength, ready):
    search_without_end(port, key, strength, ready, "GET", "/timers?metadata.owner=nobody", None)


def bodies(port, key, strength, ready):
    head = (f"POST /timers/batch HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\ncontent-type: application/json\r\n"
            "content-length: 8000000\r\n\r\n").encode() + b" " * 70_000

    async def drip(number):
        while True:
            try:
                source = (f"127.0.3.{1 + number % 250}", 0)
                _, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=source)
                writer.write(head)
                while not writer.is_closing():
                    writer.write(b" ")
                    await writer.drain()
                    await asyncio.sleep(0.5)
            except OSError:
                await asyncio.sleep(0.1)

    async def all_of_them():
        asyncio.get_running_loop().call_later(1, ready.set)
        await asyncio.gather(*(drip(number) for number in range(16 * strength)))

    asyncio.run(all_of_them())


ATTACKS = {attack.__name__: attack for attack in (interim, hanging, names, cancel, search, bodies)}


def attack_nicely(attack, *arguments):
    os.nice(19)
    attack(*arguments)


# The measurement


def percentiles(seconds):
    if not seconds:
        return "nothing arrived"
    ordered = sorted(seconds)
    at = lambda part: ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000
    return f"{at(0.5):.1f} / {at(0.99):.1f} / {at(1):.1f}"


def p99_ms(seconds):
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1000 if ordered else 0.0


def await_calls(service):
    """Waits until no timer of the innocent tenant is overdue. Those of its batches are due in hours."""
    end = time.monotonic() + LATE_SECONDS_MAX
    while service.count("innocent", "pending,executing", due_to=instant(time.time())) and time.monotonic() < end:
        time.sleep(0.2)


class Outcome:
    """What became of the innocent tenant's timers in one run."""

    def __init__(self, attack, late, sent, refused, failed):
        self.attack, self.p99_ms, self.failed = attack or "none", p99_ms(late), failed
        # A create whose answer was lost may have been made, and counts as refused.
        self.lost, self.repeated = max(0, sent - len(refused) - len(late)), max(0, len(late) - sent)

    def complaints(self, undisturbed_ms, tolerated_ms):
        for count, what in ((self.failed, "failed"), (self.lost, "were not called"), (self.repeated, "were called twice")):
            if count:
                yield f"{self.attack}: of the innocent tenant's timers, {count} {what}"
        if tolerated_ms and self.p99_ms - undisturbed_ms > tolerated_ms:
            yield (f"{self.attack}: 99 of 100 of the innocent tenant's calls were late by up to {self.p99_ms:.1f} ms, "
                   f"which is more than {tolerated_ms:g} ms above the {undisturbed_ms:.1f} ms without an attack")


def judge(outcomes, tolerated_ms):
    """Prints what is wrong, and returns whether nothing is."""
    complaints = [complaint for outcome in outcomes for complaint in outcome.complaints(outcomes[0].p99_ms, tolerated_ms)]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return not complaints


def measure(arguments, attack, is_inside, outcomes):
    with tempfile.TemporaryDirectory(prefix="timer-fairness-") as directory:
        service = Service(arguments.binary, directory, arguments.database)
        started = []
        try:
            pipe, end = processes.Pipe()
            started.append(processes.Process(target=sink, args=(end,), daemon=True))
            started[-1].start()
            sink_port = pipe.recv()
            key = service.tenant("innocent")
            # A database that --database names has the timers of the run before.
            failed_before = service.count("innocent", "failed,expired")
            if attack:
                ready = processes.Event()
                given = (ATTACKS[attack], service.port, service.tenant("greedy"), arguments.strength, ready)
                started.append(processes.Process(target=attack_nicely, args=given, daemon=True))
                started[-1].start()
                if not ready.wait(120):
                    print(f"{attack}: not under way within 120 s", file=sys.stderr)
                time.sleep(1)
            told, teller = processes.Pipe()
            host = INNOCENT_HOST if is_inside else "127.0.0.1"
            client = (service.port, key, host, sink_port, arguments.seconds, teller)
            started.append(processes.Process(target=innocent, args=client, daemon=True))
            started[-1].start()
            took, batches, lists, refused = told.recv()
            permits = service.health().get("permits")
            time.sleep(AHEAD_SECONDS + 2)
            await_calls(service)
            pipe.send("report")
            late, sent = pipe.recv(), arguments.seconds * RATE
            failed = service.count("innocent", "failed,expired") - failed_before
            outcomes.append(Outcome(attack, late, sent, refused, failed))
            print(f"| {attack or 'none'} | {percentiles(late)} | {len(late)} of {sent} | {percentiles(took)} | {percentiles(batches)} "
                  f"| {percentiles(lists)} | {len(refused)} | {service.peak_mib()} | {json.dumps(permits)} |", flush=True)
        finally:
            for process in started:
                process.kill()
                process.join()
            service.stop()


def enter_namespace(arguments):
    """Re-executes this script in a network namespace with its own hosts file and name server. Returns whether it runs there."""
    if os.environ.get(INSIDE):
        with tempfile.NamedTemporaryFile("w", delete=False) as hosts, tempfile.NamedTemporaryFile("w", delete=False) as resolver:
            hosts.write(f"127.0.0.1 localhost {INNOCENT_HOST}\n")
            resolver.write(f"nameserver {BLACK_HOLE}\noptions timeout:15 attempts:2\n")
        for command in (["ip", "link", "set", "lo", "up"], ["mount", "--bind", hosts.name, "/etc/hosts"],
                        ["mount", "--bind", resolver.name, "/etc/resolv.conf"]):
            subprocess.run(command, check=True)
        return True
    can = not arguments.database and subprocess.run(["unshare", "-rmn", "ip", "link", "set", "lo", "up"], capture_output=True).returncode == 0
    if can:
        command = ["unshare", "-rmn", sys.executable, __file__, *sys.argv[1:]]
        os.execvpe(command[0], command, {**os.environ, INSIDE: "1"})
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=pathlib.Path, help="an optimised build of timer")
    parser.add_argument("--attacks", default=",".join(ATTACKS), help="the attacks to run, separated by commas")
    parser.add_argument("--strength", type=int, default=10, help="multiplies the strength of each attack")
    parser.add_argument("--seconds", type=int, default=15, help="how long each is measured")
    parser.add_argument("--tolerated-ms", type=float, default=20,
                        help="how much later the innocent tenant's calls may be beside an attack; 0: that is not judged")
    parser.add_argument("--database", help="a PostgreSQL database, which should be empty")
    arguments = parser.parse_args()
    attacks = arguments.attacks.split(",")
    if unknown := set(attacks) - set(ATTACKS):
        parser.error(f"no attack is called {', '.join(sorted(unknown))}")
    is_inside = enter_namespace(arguments)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print("Milliseconds: half of them / 99 of 100 / all of them within\n")
    print("| attack | calls late by | arrived | creates took | batches took | lists took | refused | peak MiB | permits at the end |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    outcomes = []
    for attack in [None, *attacks]:
        if attack == "names" and not is_inside:
            print("| names | left out: there is no network namespace to do it in | | | | | | | |", flush=True)
            continue
        measure(arguments, attack, is_inside, outcomes)
    sys.exit(0 if judge(outcomes, arguments.tolerated_ms) else 1)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()
