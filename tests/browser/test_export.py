"""What the console exports is what the API exports, for the whole filter."""

import re

import pytest


def without_time_left(export: bytes) -> bytes:
    """It counts down between one export and the next."""
    return re.sub(rb'"time_left":-?\d+', b'"time_left":0', export)


@pytest.mark.parametrize("format", ("csv", "json", "ndjson"))
def test_an_export_equals_that_of_the_api(format, seeds, look):
    viewer = look(seeds.service, seeds.cookies["scoped"])
    viewer.open("/timers?q=status:pending+key:shop-later-*")
    viewer.page.get_by_text("Export", exact=True).click()
    with viewer.page.expect_download() as download:
        viewer.page.get_by_role("link", name=format.upper(), exact=True).click()
    exported = download.value.path().read_bytes()
    same = seeds.service.api("GET", f"/timers.{format}?status=pending&key_prefix=shop-later-", key=seeds.keys["scoped"])
    assert same.status == 200
    assert without_time_left(exported) == without_time_left(same.body)
    assert exported.count(b"shop-later-") >= 1_002, "the whole filter, not a page"
    viewer.check()
