#!/usr/bin/env python3
"""Refuses a dependency between our crates that the picture in ARCHITECTURE.md does not have.

Leaves never import leaves; `engine` joins two of them, and only `server` sees everything. Cargo cannot say so, hence this check.
"""

import json
import subprocess
import sys

# Only for tests: a normal dependency on one of these would bring it into the binary.
TEST_CRATES = {"store-conformance", "store-testing", "throwaway"}

# What the tests of any crate may use besides what the crate itself may.
DEV_EXTRA = TEST_CRATES | {"store"}

# What the tests of one crate may use besides that: the simulation drives the engine through the commands, as clients do.
DEV_EXTRA_OF = {"engine": {"commands", "store-partitioned"}, "store-partitioned": {"store-partitioned"}}

EVERYTHING = "everything"

ALLOWED = {
    "domain": set(),
    "store": {"domain"},
    "store-conformance": {"store", "domain"},
    # What SQL stores share. It names no database.
    "store-sql": {"store", "domain"},
    # What stores on partitioned databases share. It names no database; its tests use what it has for the tests of drivers.
    "store-partitioned": {"store", "domain"},
    "store-testing": {"store", "domain"},
    "commands": {"store", "domain"},
    "scheduler": {"store", "domain"},
    "nats": {"domain"},
    # Spans for OpenTelemetry, behind a trait of domain.
    "traces": {"domain"},
    "delivery": {"nats", "store", "domain"},
    # Joins scheduler and delivery: claims, delivers, settles.
    "engine": {"scheduler", "delivery", "store", "domain"},
    # What only `timer dev` has, for the API and the console to show.
    "dev": {"domain"},
    "api": {"commands", "dev", "domain"},
    # The web console. It has no powers of its own: all it does is a command.
    "console": {"commands", "dev", "domain"},
    "broker": {"commands", "nats", "domain"},
    # Knows a service from outside only.
    "bench": {"domain"},
    # The Rust SDK: knows a service from outside only.
    "client": set(),
    # The commands of the command line that ask a service.
    "terminal": {"client", "domain"},
    "server": EVERYTHING,
    "throwaway": set(),
}

# One crate a database, all alike.
STORE_PREFIX = "store-"
STORE_ALLOWED = {"store", "store-sql", "store-partitioned", "domain"}


def may_use(crate):
    """The crates that `crate` may use, or None when the table does not know it."""
    if crate not in ALLOWED and crate.startswith(STORE_PREFIX):
        return STORE_ALLOWED
    return ALLOWED.get(crate)


def violations(packages):
    """One sentence for each arrow that must not be there."""
    ours = {package["name"] for package in packages}
    sentences = []
    for package in sorted(packages, key=lambda package: package["name"]):
        crate = package["name"]
        allowed = may_use(crate)
        if allowed is None:
            sentences.append(f"Crate {crate} is not in the table: give it a row in scripts/check_arrows.py and ARCHITECTURE.md.")
            continue
        if allowed == EVERYTHING:
            allowed = ours - TEST_CRATES
        for dependency in package["dependencies"]:
            used, kind = dependency["name"], dependency["kind"] or "normal"
            if used not in ours or dependency.get("path") is None:
                continue
            dev_allowed = allowed | DEV_EXTRA | DEV_EXTRA_OF.get(crate, set())
            if used not in (dev_allowed if kind == "dev" else allowed):
                names = ", ".join(sorted(allowed)) or "no other crate of ours"
                sentences.append(f"Crate {crate} must not use {used} ({kind} dependency); it may use {names}.")
    return sentences


def self_test():
    """Plants bad arrows among good ones and expects exactly those to be found."""

    def arrow(used, kind=None):
        return {"name": used, "kind": kind, "path": f"/crates/{used}"}

    def crate(name, *dependencies):
        return {"name": name, "dependencies": list(dependencies)}

    from_registry = {"name": "delivery", "kind": None, "path": None}
    good = [
        crate("domain"),
        crate("store", arrow("domain"), arrow("store-conformance", "dev")),
        crate("store-conformance", arrow("store"), arrow("domain")),
        crate("store-sql", arrow("store"), arrow("domain")),
        crate("store-sqlite", arrow("store"), arrow("store-sql"), arrow("store-conformance", "dev"), arrow("throwaway", "dev")),
        crate("commands", arrow("store")),
        crate("api", arrow("commands"), arrow("store", "dev"), from_registry),
        crate("console", arrow("commands"), arrow("domain"), arrow("store-testing", "dev")),
        crate("delivery", arrow("domain")),
        crate("engine", arrow("scheduler"), arrow("delivery"), arrow("commands", "dev")),
        crate("store-testing", arrow("store")),
        crate("throwaway"),
        crate("server", arrow("api"), arrow("engine"), arrow("delivery"), arrow("store-sqlite"), arrow("throwaway", "dev")),
    ]
    planted = {
        "a leaf that imports a leaf": crate("scheduler", arrow("delivery")),
        "an API that reaches past the commands": crate("api", arrow("store")),
        "a console that reaches past the commands": crate("console", arrow("store")),
        "a console that imports the API": crate("console", arrow("api")),
        "an engine that reaches for the commands": crate("engine", arrow("commands")),
        "a leaf that imports the engine for its tests": crate("delivery", arrow("engine", "dev")),
        "a leaf in a build script": crate("broker", arrow("api", "build")),
        "a leaf that imports a leaf for its tests": crate("scheduler", arrow("delivery", "dev")),
        "a store that imports a store": crate("store-postgres", arrow("store-sqlite")),
        "what stores share that imports one of them": crate("store-sql", arrow("store-sqlite")),
        "a crate for tests in the binary": crate("server", arrow("throwaway")),
        "a store for tests in a use case": crate("commands", arrow("store-testing")),
        "a crate without a row in the table": crate("utilities"),
    }
    failures = [f"a good arrow was refused: {sentence}" for sentence in violations(good)]
    for what, bad in planted.items():
        others = [package for package in good if package["name"] != bad["name"]]
        if len(violations(others + [bad])) != 1:
            failures.append(f"not refused: {what}")
    return failures


def workspace_packages():
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["packages"]


def main(arguments):
    if arguments == ["--self-test"]:
        name, sentences = "The check of crate arrows finds planted ones", self_test()
    elif not arguments:
        packages = workspace_packages()
        name, sentences = f"{len(packages)} crates, no arrow out of place", violations(packages)
    else:
        name, sentences = "", ["Usage: check_arrows.py [--self-test]"]
    for sentence in sentences:
        print(sentence, file=sys.stderr)
    if sentences:
        return 1
    print(f"{name}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
