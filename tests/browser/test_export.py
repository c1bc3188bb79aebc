"""What the console exports is what the API exports, for the whole filter."""

import re

FORMATS = ("csv", "json", "ndjson")


def without_time_left(export: bytes) -> bytes:
    """It counts down between one export and the next."""
    return re.sub(rb'"time_left":-?\d+', b'"time_left":0', export)


def test_an_export_equals_that_of_the_api(seeds, look):
    viewer = look(seeds.service, seeds.cookies["scoped"])
    viewer.open("/timers?q=status:pending+key:shop-later-*")
    viewer.page.get_by_text("Export", exact=True).click()
    for format in FORMATS:
        with viewer.page.expect_download() as download:
            viewer.page.get_by_role("link", name=format.upper(), exact=True).click()
        exported = download.value.path().read_bytes()
        same = seeds.service.api("GET", f"/timers.{format}?status=pending&key_prefix=shop-later-", key=seeds.keys["scoped"])
        assert same.status == 200, format
        assert without_time_left(exported) == without_time_left(same.body), format
        assert exported.count(b"shop-later-") >= 1_002, f"{format}: the whole filter, not a page"
    viewer.check()
