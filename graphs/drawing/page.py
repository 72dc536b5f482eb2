"""A picture as a page of its own, which needs nothing from a network."""

from __future__ import annotations

from html import escape

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title}</title>
<style>:root{{color-scheme:light dark}}body{{margin:0;padding:12px;font:15px system-ui,sans-serif;background:Canvas;
color:CanvasText}}h1{{font-size:18px;margin:0 0 8px}}h2{{font-size:15px;margin:16px 0 6px}}
main{{overflow-x:auto}}@media (max-width:700px){{main>svg{{max-width:none!important}}}}</style>
<h1>{title}</h1><main tabindex="0" aria-label="{title}">{body}</main></html>
"""


def page(title: str, body: str) -> str:
    """The HTML of a page with this title over `body`, which is HTML itself."""
    return _PAGE.format(title=escape(title), body=body)
