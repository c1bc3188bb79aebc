"""Tests of the console in Chromium. `scripts/browser_test.sh` runs them.

Each process has a browser, and for each store that it tests a service with seeds. Tests that change settings or exhaust limits start a
service of their own. What does not depend on the store is marked `one_store`, and runs on the first one.
"""

import os
from collections import defaultdict
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright
from xdist.scheduler import LoadScopeScheduling

from rig import axe
from rig import seeds as seeds_of_tests
from rig.pages import RIGHTS
from rig.postgres import Postgres
from rig.service import STORES, Service
from rig.viewer import TIMEOUT_MS, Viewer, Window, start_browser

# What one process runs after another, with one service: about the same work each. What is not named is a part, too.
PARTS = {
    "pages": ("pages", "screenshots"),
    "access": ("rights", "login", "base_path", "hostile", "dev", "policy", "origin"),
}
# Have services of their own on the other stores, and need no seeds: any process can run them.
WITHOUT_SEEDS = ("base_path", "overview")

postgres: Postgres | None = None
expect.set_options(timeout=TIMEOUT_MS)


def pytest_addoption(parser):
    parser.addoption("--screenshots", type=Path, help="a directory for pictures of every page at three widths, in both themes")
    parser.addoption("--many-timers", type=int, default=5_000, help="how many timers the budgets are checked with")


def pytest_configure(config):
    is_worker = hasattr(config, "workerinput")
    if not is_worker and "BROWSER_POSTGRES" not in os.environ and not config.option.collectonly:
        global postgres
        postgres = Postgres()
        os.environ["BROWSER_POSTGRES"] = postgres.url("postgres")


def pytest_unconfigure(config):
    if postgres:
        postgres.stop()


class ByStoreAndPart(LoadScopeScheduling):
    """Gives one process the tests of one store and part of the suite, so that a service with seeds is started once for them."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.split("::")[0].removesuffix(".py").split("test_")[-1]
        store = next((store for store in STORES if store in nodeid.split("[")[-1]), STORES[0])
        part = next((part for part, modules in PARTS.items() if module in modules), "use")
        if store == STORES[0] or part == "pages":
            return f"{store} {part}"
        # Of the other stores there is less: one process has all that is not a page. It waits for an operation for long, so that one whose
        # other tests are mostly single requests takes what needs no seeds.
        return f"{STORES[0]} access" if module in WITHOUT_SEEDS else store


def pytest_xdist_make_scheduler(config, log):
    return ByStoreAndPart(config, log)


def pytest_generate_tests(metafunc):
    if "store" in metafunc.fixturenames:
        is_same_on_all = metafunc.definition.get_closest_marker("one_store")
        metafunc.parametrize("store", STORES[:1] if is_same_on_all else STORES, indirect=True, scope="session")


@pytest.fixture(scope="session")
def store(request) -> str:
    return request.param


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        browser = start_browser(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def seeds(store):
    service = Service(store)
    yield seeds_of_tests.plant(service)
    service.stop()


@pytest.fixture
def service(seeds) -> Service:
    return seeds.service


@pytest.fixture
def start(store):
    """Starts services of the test's own."""
    started = []

    def start(**settings) -> Service:
        started.append(Service(store, **settings))
        return started[-1]

    yield start
    for service in started:
        service.stop()


@pytest.fixture(scope="session")
def free_windows(browser):
    """Windows that no test uses, by whether there is script in them, and whether pages are live."""
    return defaultdict(list)


@pytest.fixture
def look(browser, free_windows):
    """Gives a viewer a window, and checks after the test what it has seen. One that is not `live` has paused the updates."""
    viewers: list[tuple[Viewer, list[Window]]] = []

    def look(service: Service, cookie: str = "", *, script: bool = True, live: bool = True, **options) -> Viewer:
        free = free_windows[script, live]
        window = free.pop() if free else Window(browser, script=script, live=live)
        viewers.append((Viewer(window, service, cookie, **options), free))
        return viewers[-1][0]

    yield look
    for viewer, free in viewers:
        free.append(viewer.leave())
    for viewer, _ in viewers:
        viewer.check()


@pytest.fixture(scope="session")
def standing(browser, seeds, store):
    """The viewer of a key, whose browser stays open from one page to the next."""
    viewers: dict[str, Viewer] = {}

    def standing(rights: str) -> Viewer:
        if rights not in viewers:
            # What is live is the same for all of them, and costs a poll of the service for each page.
            window = Window(browser, live=rights == RIGHTS[0])
            if axe.is_for(store):
                axe.put_into(window.context)
            viewers[rights] = Viewer(window, seeds.service, seeds.cookies[rights])
        viewers[rights].forget()
        return viewers[rights]

    yield standing
    for viewer in viewers.values():
        viewer.window.close()
