"""Every page that a viewer can reach by links, read without a browser."""

from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

from .service import Answer, Service

PAGES_MAX = 120
# Lists lead to lists with one more word in the filter, without end: this many of each kind of page are read.
OF_A_KIND_MAX = 12


class Found(HTMLParser):
    """What a page leads to and what it loads, its forms with their fields, and its live regions."""

    def __init__(self, html: str):
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.forms: list[dict] = []
        self.live: list[dict] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attrs = {name: value or "" for name, value in attrs}
        if "data-live" in attrs:
            self.live.append(attrs)
        if tag == "a" and "href" in attrs:
            self.links.append(attrs["href"])
        if tag in ("link", "script", "img", "iframe"):
            self.loaded += [attrs[name] for name in ("href", "src") if name in attrs]
        if tag == "form":
            self.forms.append({"action": attrs.get("action", ""), "method": attrs.get("method", "get").lower(), "fields": {}})
        if tag in ("input", "button", "select", "textarea") and self.forms and attrs.get("name"):
            self.forms[-1]["fields"][attrs["name"]] = attrs.get("value", "")


def kind_of(path: str) -> str:
    """`/timers/{id}/edit` for every timer, `/timers?` for every filter."""
    parts = ["{}" if any(c.isdigit() for c in part) else part for part in urlsplit(path).path.split("/")]
    return "/".join(parts) + ("?" if "?" in path else "")


def crawl(service: Service, cookie: str, begin: list[str], pages_max: int = PAGES_MAX) -> dict[str, Answer]:
    """The answers by their path behind the base path. Only GET: nothing is changed."""
    waiting, read, kinds = list(begin), {}, {}
    while waiting and len(read) < pages_max:
        path = waiting.pop(0)
        kind = kind_of(path)
        if path in read or kinds.get(kind, 0) >= OF_A_KIND_MAX:
            continue
        kinds[kind] = kinds.get(kind, 0) + 1
        answer = read[path] = service.request("GET", path, headers={"Cookie": cookie, "Accept": "text/html"})
        if "text/html" not in answer.headers.get("content-type", ""):
            continue
        for link in Found(answer.text).links:
            target = urlsplit(urljoin(service.origin + service.base_path + path, link))
            if f"{target.scheme}://{target.netloc}" != service.origin:
                continue
            behind = target.path.removeprefix(service.base_path)
            if behind.startswith("/console"):
                waiting.append(behind + (f"?{target.query}" if target.query else ""))
    return read
