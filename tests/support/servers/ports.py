"""Choose ports for servers that tests start."""

import secrets
import socket


def free_port() -> int:
    """Below the range from which outgoing connections take theirs: it is still free when a server starts, and again."""
    while True:
        port = 15_000 + secrets.randbelow(17_000)  # not `random`, which tests may have made the same everywhere
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
