"""Pages of their own, which need nothing from a network: a picture, or a template with a script and its data."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

from graphs.plain import escaped

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
    return _PAGE.format(title=escaped(title), body=body)


def scripted(template: str, script: str, data: Any, **parts: str) -> str:
    """The template with `{{script}}`, its hash as `{{policy}}`, `{{data}}` as JSON, and other parts, which are HTML.

    With the hash in its policy a page runs no code but the script, whatever is in the data.
    """
    policy = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    filled = {**parts, "script": script, "policy": policy, "data": _json(data)}
    return re.sub(r"\{\{(\w+)\}\}", lambda name: filled[name[1]], template)  # at once: no text is a pattern


def _json(data: Any) -> str:
    """JSON that ends no script and begins no comment, whatever text is in it."""
    text = json.dumps(data, separators=(",", ":"))  # ASCII alone
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
