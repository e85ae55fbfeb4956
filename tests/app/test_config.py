"""Test configuration: precedence of flags, environment and file, and invalid settings."""

import os
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from rota.config import SETTINGS, Config, changed, load_config
from rota.errors import BadConfig


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    return tmp_path / "rota.toml"


def test_defaults() -> None:
    config = load_config(environment={}, file=None)
    assert config == Config()
    assert (config.lease, config.heartbeat, config.reaper) == tuple(timedelta(seconds=n) for n in (30, 10, 5))


def test_flags_win_over_environment_wins_over_file(toml: Path) -> None:
    toml.write_text('port = 1\nhost = "file"\nconcurrency = 3\n')
    environment = {"ROTA_PORT": "2", "ROTA_HOST": "environment"}
    config = load_config({"port": 4, "host": None}, environment, toml)
    assert (config.port, config.host, config.concurrency) == (4, "environment", 3)


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting_can_come_from_everywhere(setting: str, toml: Path) -> None:
    values = {timedelta: "12s", int: "100", str: "sqlite:///x.db", bool: "true"}
    field = next(field for field in msgspec.structs.fields(Config) if field.name == setting)
    written = values[field.type] if setting != "heartbeat" else "2s"
    if setting == "lease":
        written = "45s"
    if setting == "log_format":
        written = "json"
    if setting == "base_path":
        written = "/rota"
    if setting == "dashboard_url":
        written = "https://rota.example.com"
    if setting == "enqueue_rate":
        written = "5/1m"
    if setting in ("http_allow", "trusted_proxies"):
        written = "10.0.0.0/8,::1"
    if setting == "jwt_secret":
        written = "x" * 32
    toml.write_text(f"{setting} = {written if field.type is int else repr(written)}\n")
    from_flag = load_config({setting: written}, {})
    assert load_config(None, {f"ROTA_{setting.upper()}": written}) == from_flag
    assert load_config(None, {}, toml) == from_flag
    assert getattr(from_flag, setting) != getattr(Config(), setting)


def test_rota_toml_in_the_working_directory_is_read(toml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toml.write_text("port = 99\n")
    monkeypatch.chdir(toml.parent)
    assert load_config(environment={}).port == 99


def test_the_environment_is_the_processs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "ROTA_PORT", "98")
    assert load_config().port == 98


def test_other_programs_variables_are_left_alone() -> None:
    assert load_config(None, {"ROTA_TEST_POSTGRES_URL": "x", "ROTATION": "y"}) == Config()


def test_a_misspelt_setting_is_named_with_the_nearest(toml: Path) -> None:
    toml.write_text('databse_url = "sqlite:///x.db"\n')
    with pytest.raises(BadConfig, match=r"databse_url.*did you mean 'database_url'"):
        load_config(None, {}, toml)
    with pytest.raises(BadConfig, match=r"leas.*did you mean 'lease'"):
        load_config({"leas": "30s"}, {})


@pytest.mark.parametrize("value", ["30", "soon", "-5s", "", 30])
def test_a_bad_duration_says_how_to_write_one(value: object) -> None:
    with pytest.raises(BadConfig, match=r"lease cannot be .*write a number and a unit"):
        load_config({"lease": value}, {})


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"lease": "29s"}, "3 × heartbeat"),
        ({"heartbeat": "11s"}, "3 × heartbeat"),
        ({"lease": "999ms", "heartbeat": "100ms"}, "minimum is 1s"),
        ({"heartbeat": "0s"}, "must be positive"),
        ({"poll": "0s"}, "must be positive"),
        ({"reaper": "0s"}, "must be positive"),
        ({"concurrency": 0}, "1 to"),
        ({"concurrency": "many"}, "concurrency cannot be 'many'"),
        ({"port": 65_536}, "port must be"),
        ({"port": "-1"}, "port must be"),
        ({"max_payload": 1}, "max_payload"),
    ],
)
def test_what_cannot_work_is_refused(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(BadConfig, match=reason):
        load_config(settings, {})


@pytest.mark.parametrize(("lease", "heartbeat"), [("30s", "10s"), ("1s", "333ms"), ("1h", "20m")])
def test_a_lease_of_three_heartbeats_is_enough(lease: str, heartbeat: str) -> None:
    load_config({"lease": lease, "heartbeat": heartbeat}, {})


def test_a_file_that_is_named_must_be_there_and_be_toml(toml: Path) -> None:
    with pytest.raises(BadConfig, match="no file"):
        load_config(None, {}, toml)
    toml.write_text("this is not toml")
    with pytest.raises(BadConfig, match=r"rota\.toml"):
        load_config(None, {}, toml)
    toml.write_bytes(b"\xff\xfe")
    with pytest.raises(BadConfig):
        load_config(None, {}, toml)


def test_settings_can_be_changed_as_they_are_written() -> None:
    config = changed(Config(), {"lease": "1m", "concurrency": 3, "port": None})
    assert (config.lease, config.concurrency, config.port) == (timedelta(minutes=1), 3, Config().port)
    with pytest.raises(BadConfig, match="did you mean 'lease'"):
        changed(Config(), {"lese": "1m"})
    with pytest.raises(BadConfig, match="3 × heartbeat"):
        changed(Config(), {"lease": "2s"})


@pytest.mark.parametrize(("word", "means"), [("1", True), ("on", True), ("False", False), ("no", False)])
def test_yes_and_no_have_several_words(word: str, means: bool) -> None:
    assert load_config(environment={"ROTA_TRACING": word}).tracing is means


@pytest.mark.parametrize(("setting", "value"), [("ROTA_TRACING", "perhaps"), ("ROTA_LOG_FORMAT", "xml")])
def test_other_words_are_refused(setting: str, value: str) -> None:
    with pytest.raises(BadConfig, match=value):
        load_config(environment={setting: value})


def test_what_is_refused_is_named_as_it_was_set(toml: Path) -> None:
    with pytest.raises(BadConfig, match=r"ROTA_LOG_RUNS cannot be 'maybe' \(write true or false\)"):
        load_config(environment={"ROTA_LOG_RUNS": "maybe"})
    toml.write_text('concurrency = "many"\n')
    with pytest.raises(BadConfig, match=r"concurrency in .*rota\.toml cannot be 'many' \(write a whole number\)"):
        load_config(None, {}, toml)
    assert load_config({"concurrency": 3}, {}, toml).concurrency == 3


@pytest.mark.parametrize("text", ["localhost", "10.0.0.1/8", "*"])
def test_networks_that_are_none(text: str) -> None:
    with pytest.raises(BadConfig, match="http_allow"):
        Config(http_allow=text)
