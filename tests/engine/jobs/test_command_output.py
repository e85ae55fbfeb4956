"""Test how a program's output is split into lines, and how a flood is limited."""

from rota.engine.jobs.command_output import Output


class Heard:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now = 0.0
        self.output = Output(self.lines.append, lambda: self.now)


def test_lines_come_as_they_are_complete() -> None:
    heard = Heard()
    heard.output.feed(b"one\ntw")
    assert heard.lines == ["one"]
    heard.output.feed(b"o\r\n\nthr")
    assert heard.lines == ["one", "two"]
    heard.output.end()
    assert heard.lines == ["one", "two", "thr"]
    assert heard.output.tail == "one\ntwo\nthr"


def test_a_long_line_is_cut_and_the_next_one_is_whole() -> None:
    heard = Heard()
    for _ in range(5):
        heard.output.feed(b"x" * 5_000)
    heard.output.feed(b"\nnext\n")
    assert [line[:4] for line in heard.lines] == ["xxxx", "next"]
    heard.output.feed(b"y" * 9_000 + b"\n")
    assert heard.lines[2] == "y" * 7_999 + "…"


def test_of_a_flood_the_beginning_and_the_end_are_said() -> None:
    heard = Heard()
    for number in range(10_000):
        heard.output.feed(b"%09d\n" % number * 100)
    heard.output.end()
    assert heard.lines[0] == "000000000"
    assert heard.lines[-1] == "000009999"
    (told,) = [line for line in heard.lines if "left out" in line]
    left_out = int(told.split()[1])
    assert left_out + len(heard.lines) - 1 == 1_000_000
    assert len(heard.lines) < 60_000


def test_after_a_while_it_is_listened_to_again() -> None:
    heard = Heard()
    for _ in range(100):
        heard.output.feed(b"x" * 9_999 + b"\n")
    heard.now = 1.0
    heard.output.feed(b"still here\n")
    assert heard.lines[-1] == "still here"
    assert heard.output.tail.endswith("still here")
