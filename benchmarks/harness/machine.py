"""On what a measurement was taken, for the head of its page."""

import os
import platform

from benchmarks.harness.cluster import Cluster


async def facts(cluster: Cluster) -> dict[str, str]:
    return {
        "machine": f"{os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()}",
        "database": ", ".join((await cluster.version(), *(f"{key} {word}" for key, word in cluster.settings.items()))),
    }


def load() -> str:
    return " ".join(f"{average:.2f}" for average in os.getloadavg())
