"""Pictures of every page, for people to judge: `--screenshots DIRECTORY`. A job of CI takes and keeps them."""

import re

import pytest

from rig.pages import DIALOGS, EMPTY, PAGES
from rig.room import WIDTHS
from rig.service import ADMINISTRATOR, Service

pytestmark = pytest.mark.one_store


@pytest.fixture
def directory(request):
    directory = request.config.getoption("--screenshots")
    if not directory:
        pytest.skip("without --screenshots DIRECTORY")
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@pytest.fixture(params=("light", "dark"))
def theme(request) -> str:
    return request.param


def take(viewer, directory, name: str, theme: str):
    """One load serves all widths."""
    for width in WIDTHS:
        viewer.page.set_viewport_size({"width": width, "height": 900})
        viewer.page.screenshot(path=directory / f"{name}-{theme}-{width}.png", full_page=True)


def test_pictures_of_every_page_are_taken(theme, seeds, look, directory):
    viewer = look(seeds.service, seeds.cookies["administrator"], theme=theme)
    for page in PAGES:
        viewer.open(page.path(seeds))
        take(viewer, directory, page.name, theme)
    for dialog in DIALOGS:
        viewer.page.set_viewport_size({"width": WIDTHS[-1], "height": 900})
        viewer.open(dialog.path(seeds))
        dialog.open(viewer.page)
        take(viewer, directory, f"dialog-{dialog.name}", theme)
    stranger = look(seeds.service, theme=theme)
    stranger.open("/login")
    take(stranger, directory, "login", theme)


def test_pictures_of_an_empty_service_are_taken(theme, start, look, directory):
    service = start()
    viewer = look(service, service.log_in(ADMINISTRATOR), theme=theme)
    for path in EMPTY:
        viewer.open(path)
        take(viewer, directory, f"empty-{path.strip('/') or 'overview'}", theme)


@pytest.fixture
def dev(directory):
    service = Service("sqlite", command="dev")
    yield service
    service.stop()


# The viewer goes before the service does.
def test_pictures_of_the_inbox_are_taken(theme, dev, look, directory):
    viewer = look(dev, dev.log_in(ADMINISTRATOR), theme=theme)
    viewer.open("/inbox")
    take(viewer, directory, "empty-inbox", theme)
    receiver = re.search(r"Receiver +(http\S+)", dev.log)[1]
    for n in range(3):
        id = dev.create(f"{receiver}/orders/{n}", delay="0s", key=f"order-{n}", payload={"order": n})
        dev.wait_for_status(id, "completed")
    viewer.open("/inbox")
    viewer.page.locator("#inbox-calls summary").first.click()
    take(viewer, directory, "inbox", theme)
