"""Cells of a CSV file that people open in a spreadsheet: text from other people's systems never begins a formula there.

The law: what is written can be read again exactly. A plain whole number stays as it is, so that a coordinate's digits do; any other
cell that a spreadsheet would take for a formula begins with an apostrophe. Source: OWASP, *CSV Injection*.
"""

from __future__ import annotations

import re

FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""How a formula begins, in full width too; behind apostrophes, because those were not written by us."""
NUMBER = re.compile(r"-?[0-9]+")


def cell_write(text: str) -> str:
    """
    >>> cell_write("=HYPERLINK(1)"), cell_write("-1+2"), cell_write("-7210000000000000123"), cell_write("order 7")
    ("'=HYPERLINK(1)", "'-1+2", '-7210000000000000123', 'order 7')
    """
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def cell_read(cell: str) -> str:
    """What `cell_write` was given.

    >>> [cell_read(cell_write(text)) for text in ("=1", "'=1", "'", "-5", "'-5", "@x")]
    ['=1', "'=1", "'", '-5', "'-5", '@x']
    """
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell
