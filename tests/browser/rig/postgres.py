"""One PostgreSQL server for a run of the tests, with a database for each service. The crate `throwaway` does the same for Rust."""

import glob
import os
import shutil
import socket
import subprocess

from .processes import home, spawn, wait_for

SUPERUSER = "timer"


def programs() -> str:
    """The directory with the server programs: on PATH, or the newest of Debian's."""
    on_path = shutil.which("initdb")
    debian = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[-2]), reverse=True)
    for directory in ([os.path.dirname(os.path.realpath(on_path))] if on_path else []) + debian:
        if all(os.path.exists(f"{directory}/{name}") for name in ("initdb", "postgres", "psql")):
            return directory
    raise RuntimeError("no PostgreSQL server programs on PATH or in /usr/lib/postgresql: install the package `postgresql`")


def environment() -> dict[str, str]:
    """Without a developer's own PGPORT or PGSERVICE, which would lead to another server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}


class Postgres:
    def __init__(self, *, is_durable: bool = False):
        self.home = home("postgres")
        self.port = free_port()
        # PostgreSQL refuses to run as root.
        self.user = "postgres" if os.getuid() == 0 else None
        if self.user:
            shutil.chown(self.home.name, self.user)
        data = f"{self.home.name}/data"
        initdb = [f"{programs()}/initdb", "--pgdata", data, "--username", SUPERUSER, "--auth=trust", "--no-sync", "--encoding=UTF8"]
        log = f"{self.home.name}/log"
        made = spawn(initdb, self.home.name, f"{self.home.name}.initdb", user=self.user, env=environment()).wait()
        os.remove(f"{self.home.name}.initdb")
        assert made == 0, "initdb failed"
        options = [f"unix_socket_directories={self.home.name}", "listen_addresses=127.0.0.1", "max_connections=400"]
        options += [] if is_durable else ["fsync=off"]
        command = [f"{programs()}/postgres", "-D", data, "-p", str(self.port)]
        for option in options:
            command += ["-c", option]
        # SIGQUIT is its immediate shutdown: it takes its children along.
        self.process = spawn(command, self.home.name, log, signal="QUIT", user=self.user, env=environment())
        wait_for("PostgreSQL", self.is_ready)

    def is_ready(self) -> bool:
        try:
            with open(f"{self.home.name}/data/postmaster.pid", encoding="utf-8") as status:
                return status.read().splitlines()[7].strip() == "ready"
        except (OSError, IndexError):
            return False

    def url(self, database: str) -> str:
        return f"postgres://{SUPERUSER}@127.0.0.1:{self.port}/{database}"

    def stop(self):
        self.process.send_signal(3)
        self.process.wait()
        self.home.cleanup()


def create_database(server: str, name: str) -> str:
    """An empty database of the server whose maintenance database has this URL."""
    psql = [f"{programs()}/psql", "--no-psqlrc", "--quiet", "--dbname", server, "--command", f"CREATE DATABASE {name} TEMPLATE template0"]
    subprocess.run(psql, check=True, env=environment())
    return server.rsplit("/", 1)[0] + "/" + name


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
