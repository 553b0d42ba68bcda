"""The look that all charts share: no background, the page's text colour, and one mark at a time under the pointer."""

from __future__ import annotations

from typing import Any

LOOK: dict[str, Any] = {
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "font": {"color": "var(--ink)", "size": 13, "family": "inherit"},
    "hovermode": "closest",
    "hoverlabel": {"bgcolor": "var(--panel)", "bordercolor": "var(--line-strong)", "font": {"color": "var(--ink)"}},
    "dragmode": "zoom",
}
