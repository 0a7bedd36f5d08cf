"""Certificates for a test: an authority, and what it signs, made by the openssl program."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts import tools


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key."""

    cert: Path
    key: Path

    @property
    def fingerprint(self) -> str:
        return _openssl("x509", "-in", self.cert, "-noout", "-fingerprint", "-sha256")


class Authority:
    """Signs certificates, as an office would."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
        _openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE",
            "-keyout", self.pair.key, "-out", self.pair.cert,
        )  # fmt: skip

    def sign(
        self,
        name: str,
        san: str = "DNS:localhost,IP:127.0.0.1",
        *,
        expired: bool = False,
        early: bool = False,
    ) -> Pair:
        """A certificate for a name; an expired one was good for a month, an early one will be."""
        pair = Pair(self.folder / f"{self.name}-{name}.pem", self.folder / f"{self.name}-{name}.key")
        request, extensions = pair.cert.with_suffix(".csr"), pair.cert.with_suffix(".ext")
        extensions.write_text(f"subjectAltName={san}\n")
        _openssl(
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
            "-keyout", pair.key, "-out", request,
        )  # fmt: skip
        if expired:
            self._sign_for(request, extensions, pair.cert, "20240101000000Z", "20240201000000Z")
        elif early:
            self._sign_for(request, extensions, pair.cert, "20900101000000Z", "20900201000000Z")
        else:
            _openssl(
                "x509", "-req", "-in", request, "-CA", self.pair.cert, "-CAkey", self.pair.key,
                "-CAcreateserial", "-days", "2", "-extfile", extensions, "-out", pair.cert,
            )  # fmt: skip
        return pair

    def _sign_for(self, request: Path, extensions: Path, out: Path, since: str, until: str) -> None:
        """`openssl x509` dates from now on; `openssl ca` takes any dates, and wants a folder for it."""
        home = self.folder / "ca"
        home.mkdir(exist_ok=True)
        (home / "index.txt").touch()
        config = home / "ca.cnf"
        config.write_text(
            f"[ca]\ndefault_ca=us\n[us]\ndir={home}\nnew_certs_dir={home}\ndatabase={home}/index.txt\n"
            "rand_serial=yes\ndefault_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n"
        )
        _openssl(
            "ca", "-batch", "-config", config, "-cert", self.pair.cert, "-keyfile", self.pair.key,
            "-in", request, "-startdate", since, "-enddate", until,
            "-extfile", extensions, "-notext", "-out", out,
        )  # fmt: skip


def _openssl(*words: object) -> str:
    if shutil.which("openssl") is None:
        pytest.skip(tools.why_not("openssl"))
    made = subprocess.run(["openssl", *map(str, words)], check=False, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()
