"""Quantities as people read them."""

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
STEPS = ((1e24, "Y"), (1e21, "Z"), (1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def scaled(value: float, unit: str = "") -> str:
    """Three digits with a decimal prefix, such as ``1.75 GB``."""
    for size, prefix in STEPS:
        if value >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}".rstrip()


def span(seconds: float) -> str:
    """A length of time in the unit that suits it, with three digits."""
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:,.3g} {unit}" if seconds < 1000 * size else f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.3g} s"


def within(low: float, high: float) -> str:
    """By which factor the ends of an interval are off its middle, such as ``×/÷ 1.25``; nothing where it is a point."""
    return f"×/÷ {(high / low) ** 0.5:.3g}" if 0 < low < high else ""
