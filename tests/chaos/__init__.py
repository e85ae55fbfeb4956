"""Real processes, broken in every way at hand, and whether rota kept its promises meanwhile; no part of the package."""
