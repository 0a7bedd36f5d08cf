"""Many values as a few: the middle, the slow end, the worst."""

from collections.abc import Sequence
from statistics import quantiles

NAMES = ("p50", "p95", "p99", "max")


def spread(values: Sequence[float], prefix: str) -> dict[str, float | None]:
    """Percentiles by name, such as `pickup_ms_p99`; none without values."""
    if not values:
        return {f"{prefix}_{name}": None for name in NAMES}
    cuts = quantiles(values, n=100, method="inclusive") if len(values) > 1 else [values[0]] * 99
    return dict(
        zip((f"{prefix}_{name}" for name in NAMES), (cuts[49], cuts[94], cuts[98], max(values)), strict=True)
    )
