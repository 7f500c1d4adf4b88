"""Draws close-rota.svg for docs/explanation/close-rotas.md: `python docs/pictures/close_rota.py`. A test compares it with the design."""

from __future__ import annotations

from pathlib import Path

CORES, LARGE = 64, 8  # of the server, and of a large job
WORK = (24.0, 3.6)
CORNERS = ((64, 0), (0, 8))
CLOSE = ((32, 4), (24, 5))
LEFT, BOTTOM, WIDTH, HEIGHT = 70, 330, 560, 290


def _at(small: float, large: float) -> tuple[float, float]:
    return LEFT + small / CORES * WIDTH, BOTTOM - large / (CORES / LARGE) * HEIGHT


def _dot(point: tuple[float, float], colour: str, words: str, dx: int = 10, dy: int = -8) -> str:
    x, y = _at(*point)
    label = f'<text x="{x + dx:.0f}" y="{y + dy:.0f}" fill="{colour}">{words}</text>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{colour}"/>{label}'


def _line(a: tuple[float, float], b: tuple[float, float], style: str) -> str:
    (x1, y1), (x2, y2) = _at(*a), _at(*b)
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def svg() -> str:
    """The picture."""
    region = " ".join(f"{x:.1f},{y:.1f}" for x, y in (_at(0, 0), _at(64, 0), _at(0, 8)))
    places = [_at(s, n) for n in range(9) for s in range(0, 65 - 8 * n, 2)]
    grid = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1" fill="#999"/>' for x, y in places)
    ticks = "".join(f'<text x="{_at(s, 0)[0]:.0f}" y="{BOTTOM + 20}" text-anchor="middle">{s}</text>' for s in range(0, 65, 16))
    ticks += "".join(f'<text x="{LEFT - 12}" y="{_at(0, n)[1] + 5:.0f}" text-anchor="end">{n}</text>' for n in range(0, 9, 2))
    middle = BOTTOM - HEIGHT // 2
    far, near = 'stroke="#D55E00" stroke-width="2" stroke-dasharray="7 5"', 'stroke="#0072B2" stroke-width="3"'
    parts = [
        f'<polygon points="{region}" fill="#eef3f8" stroke="#555"/>',
        grid,
        ticks,
        _line(*CORNERS, far),
        _line(*CLOSE, near),
        _dot(CORNERS[0], "#D55E00", "64 small", -40, -26),
        _dot(CORNERS[1], "#D55E00", "8 large", 12, 4),
        _dot(CLOSE[0], "#0072B2", "32 small + 4 large", 12, -6),
        _dot(CLOSE[1], "#0072B2", "24 small + 5 large", 12, -6),
        _dot(WORK, "#222", "the work: 24 small, 3.6 large", -60, 26),
        f'<text x="{LEFT + WIDTH / 2:.0f}" y="{BOTTOM + 44}" text-anchor="middle">small jobs at once (1 core)</text>',
        f'<text x="24" y="{middle}" text-anchor="middle" transform="rotate(-90 24 {middle})">large jobs at once (8 cores)</text>',
    ]
    body = "\n".join(parts)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 385" font-family="sans-serif" font-size="15">\n'
        f'<rect width="700" height="385" fill="#fff"/>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    Path(__file__).with_name("close-rota.svg").write_text(svg(), encoding="utf-8")
