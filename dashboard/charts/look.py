"""What every chart of a page looks like: no ground of its own, the page's ink, a hover that shows one mark."""

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
