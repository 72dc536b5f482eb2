"""Records from the JSON values of their lines, and back: what a test writes down, and what it looks at."""

import json

from msgspec import to_builtins

from compare.records import results


def typed(line):
    """The record of a line without its version, or those of a list of lines; a record stays as it is."""
    if isinstance(line, list | tuple):
        return [typed(one) for one in line]
    if not isinstance(line, dict):
        return line
    record = results.parse_line(json.dumps({"schema": results.VERSION, **line}).encode())
    assert record is not None
    return record


def plain(record):
    """The JSON value of a record, of a part of one, or of some of them."""
    return to_builtins(record)


def lines(path):
    """The JSON values of a results file."""
    return plain(results.read(path))
