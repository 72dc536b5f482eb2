"""Check the built site: every link and anchor leads somewhere, and no page loads anything from another host."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SITE = Path(__file__).resolve().parents[2] / "build" / "site"
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}
"""What a browser fetches by itself. A link that a reader clicks may lead to another host."""


class Page(HTMLParser):
    """The anchors of a page, what it loads, and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the ids and addresses of one element."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if given.get(LOADED.get(tag, ""), "") and given.get("rel") not in ("next", "prev", "canonical"):
            self.loads.append(given[LOADED[tag]])


def problems(site: Path) -> list[str]:
    """What is wrong with the pages of a site, a sentence each."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    return [
        f"{path.relative_to(site)}: {problem}"
        for path, page in pages.items()
        if path.name != "404.html"  # its addresses are those of the root, whatever page was asked for
        for problem in [*_foreign(page), *_broken(path, page, pages)]
    ]


def _foreign(page: Page) -> Iterator[str]:
    yield from (f"loads {address} from another host" for address in page.loads if urlsplit(address).netloc)


def _broken(path: Path, page: Page, pages: dict[Path, Page]) -> Iterator[str]:
    for address in (*page.links, *page.loads):
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.is_file():
            yield f"{address} leads nowhere"
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            yield f"{address} has no such anchor"


def main() -> int:
    """Print the problems of the built site. Returns 1 if there is one."""
    found = problems(SITE)
    sys.stdout.write("".join(f"{problem}\n" for problem in found))
    sys.stdout.write(f"{sum(1 for _ in SITE.rglob('*.html'))} pages, {len(found)} problems\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
