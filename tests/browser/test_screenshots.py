"""Pictures of every page, for people to judge: `--screenshots DIRECTORY`."""

import pytest

from rig.pages import PAGES

pytestmark = pytest.mark.one_store


@pytest.mark.parametrize("theme", ("light", "dark"))
@pytest.mark.parametrize("width", (320, 900, 1_600))
def test_pictures_are_taken(width, theme, seeds, look, request):
    directory = request.config.getoption("--screenshots")
    if not directory:
        pytest.skip("without --screenshots DIRECTORY")
    directory.mkdir(parents=True, exist_ok=True)
    viewer = look(seeds.service, seeds.cookies["administrator"], theme=theme, width=width, height=900)
    for page in PAGES:
        viewer.open(page.path(seeds))
        viewer.page.screenshot(path=directory / f"{page.name}-{theme}-{width}.png", full_page=True)
    stranger = look(seeds.service, theme=theme, width=width)
    stranger.open("/login")
    stranger.page.screenshot(path=directory / f"login-{theme}-{width}.png")
