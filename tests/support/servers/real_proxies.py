"""nginx, Caddy and HAProxy, whichever are installed, with the files of deploy/proxies."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers.ports import free_port
from tests.support.wait import wait_for

FILES = Path(__file__).parents[3] / "deploy" / "proxies"
COMMANDS = {
    "nginx": ("nginx.conf", ["nginx", "-e", "{folder}/errors", "-p", "{folder}", "-c", "{file}"]),
    "caddy": ("Caddyfile", ["caddy", "run", "--adapter", "caddyfile", "--config", "{file}"]),
    "haproxy": ("haproxy.cfg", ["haproxy", "-db", "-f", "{file}"]),
}
INSTALLED = [name for name in COMMANDS if shutil.which(name) and shutil.which("openssl")]
AROUND = {
    "nginx": "daemon off; pid {folder}/pid; error_log {folder}/errors; events {{}}\nhttp {{\n{text}\n}}\n",
    "caddy": "{{\n admin off\n auto_https disable_redirects\n local_certs\n https_port {port}\n}}\n{text}",
    "haproxy": "{text}",
}


def by_openssl(folder: Path) -> None:
    """Write a certificate for the names in the files, and its key."""
    subject = ["-subj", "/CN=rota", "-addext", "subjectAltName=DNS:rota.example.com,DNS:tools.example.com"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*made, "-keyout", "key.pem", "-out", "cert.pem"], cwd=folder, check=True, capture_output=True)


@contextmanager
def behind(
    name: str,
    ports: Mapping[str, int],
    folder: Path,
    certify: Callable[[Path], object] = by_openssl,
    hosts: Mapping[str, str] | None = None,
) -> Iterator[int]:
    """Start a proxy with its file from deploy/, at a free port and with a certificate of its own.

    `certify` writes `cert.pem` and `key.pem`. `hosts`: names that stand for those in the file.
    """
    port = free_port()
    certify(folder)
    (folder / "both.pem").write_text((folder / "cert.pem").read_text() + (folder / "key.pem").read_text())
    source, command = COMMANDS[name]
    text = (FILES / source).read_text().replace("/etc/ssl/rota", str(folder))
    text = text.replace("127.0.0.1:7682", f"127.0.0.1:{ports['root']}").replace(
        "127.0.0.1:7683", f"127.0.0.1:{ports['below']}"
    )
    for written, host in (hosts or {}).items():
        text = text.replace(written, host)
    text = re.sub(r"(listen |bind :)443", rf"\g<1>{port}", text)
    file = folder / source
    file.write_text(AROUND[name].format(folder=folder, text=text, port=port))
    filled = [part.format(folder=folder, file=file) for part in command]
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen(
            filled, stdout=log, stderr=log, cwd=folder, env={"HOME": str(folder), "PATH": "/usr/sbin:/usr/bin:/bin"}
        )
    try:
        wait_for(lambda: _listens(port), 30, (folder / "proxy.log").read_text)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
