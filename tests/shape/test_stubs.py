"""The stub of the synchronous client is current."""

from tools.stubs import STUB, stub


def test_the_stub_is_current() -> None:
    assert STUB.read_text() == stub(), "write it anew: .venv/bin/python -m tools.stubs"
