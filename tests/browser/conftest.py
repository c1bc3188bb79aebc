"""Tests of the console in Chromium. `scripts/browser_test.sh` runs them.

Each process has a browser, and for each store that it tests a service with seeds. Tests that change settings, exhaust limits or
revoke keys start a service of their own.
"""

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright
from xdist.scheduler import LoadScopeScheduling

from rig import seeds as seeds_of_tests
from rig.postgres import Postgres
from rig.service import STORES, Service
from rig.viewer import PATIENCE_MS, Viewer, start_browser

# What is not named here is a part of its own.
PARTS = {
    "pages": ("pages", "screenshots"),
    "access": ("rights", "login", "base_path", "hostile", "dev"),
    "budgets": ("budgets",),
}

postgres: Postgres | None = None
expect.set_options(timeout=PATIENCE_MS)


def pytest_addoption(parser):
    parser.addoption("--screenshots", type=Path, help="a directory for pictures of every page at three widths, in both themes")
    parser.addoption("--many-timers", type=int, default=200_000, help="how many timers the budgets are checked with")


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
        part = next((part for part, modules in PARTS.items() if module in modules), "use")
        if part == "pages":
            part += "-of-administrator" if "administrator" in nodeid else ""
        store = next((store for store in STORES if store in nodeid.split("[")[-1]), "any")
        return f"{store}-{part}"


def pytest_xdist_make_scheduler(config, log):
    return ByStoreAndPart(config, log)


@pytest.fixture(scope="session", params=STORES)
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


@pytest.fixture
def look(browser):
    """Opens a viewer, and looks after the test at what it has seen."""
    viewers = []

    def look(service: Service, cookie: str = "", **options) -> Viewer:
        viewers.append(Viewer(browser, service, cookie, **options))
        return viewers[-1]

    yield look
    for viewer in viewers:
        viewer.close()
