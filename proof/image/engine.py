"""buildah and podman with a storage of their own: no image or container of the machine is read or changed."""

import os
import resource
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HELPERS = "/usr/lib/podman"
PROGRAMS = {
    **{name: name for name in ("buildah", "podman", "runc", "debootstrap", "iptables", "catatonit")},
    **{f"{HELPERS}/{name}": name for name in ("netavark", "aardvark-dns")},
}
PROCESSES_MAX = 32768
PULL_SECONDS_MAX = 120
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
SETTINGS = """\
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
[containers]
default_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]
"""


def install_missing() -> None:
    """Install the programs that are missing with apt, which takes root; raises where that fails."""
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if missing:
        print(f"installing {', '.join(missing)} with apt", flush=True)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "-qq", "update"], env=quiet, check=False)
        install = ["apt-get", "-qq", "--yes", "--no-install-recommends", "install", *missing]
        subprocess.run(install, env=quiet, check=True, stdout=subprocess.DEVNULL)


@dataclass(frozen=True)
class Engine:
    """The engine, its files in one folder."""

    folder: Path

    def prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        settings = SETTINGS.format(files=files, processes=PROCESSES_MAX)
        (self.folder / "containers.conf").write_text(settings)
        folders = f'graphroot = "{self.folder}/storage"\nrunroot = "{self.folder}/run"\n'
        (self.folder / "storage.conf").write_text(f'[storage]\ndriver = "{self._driver()}"\n{folders}')
        (self.folder / "pip.conf").write_text(f"[global]\ncert = {CERTIFICATES}\n")

    def _driver(self) -> str:
        """An overlay where the kernel has one, else whole copies."""
        return "overlay" if "overlay" in Path("/proc/filesystems").read_text() else "vfs"

    @property
    def environment(self) -> dict[str, str]:
        ours = {
            "CONTAINERS_CONF": f"{self.folder}/containers.conf",
            "CONTAINERS_STORAGE_CONF": f"{self.folder}/storage.conf",
        }
        return {**os.environ, **ours}

    def run(self, *words: str | Path, check: bool = True, seconds: float = 600) -> str:
        """The output of a command of the engine; raises with that output where it failed."""
        command = [str(word) for word in words]
        try:
            done = subprocess.run(
                command, env=self.environment, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            raise EngineFailed(f"{' '.join(command[:4])} took longer than {seconds:g} s") from None
        if check and done.returncode:
            raise EngineFailed(f"{' '.join(command[:6])}: {(done.stderr or done.stdout).strip()[-1500:]}")
        return done.stdout

    def has(self, image: str) -> bool:
        return bool(self.run("podman", "images", "--quiet", image).strip())

    def pull(self, image: str) -> bool:
        """Whether a registry gave it."""
        try:
            self.run("podman", "pull", "--quiet", image, seconds=PULL_SECONDS_MAX)
        except EngineFailed:
            return False
        return True

    def build(self, context: Path, image: str, **arguments: str) -> None:
        """Build an image from a folder. The machine's certificates are lent to it, for pip behind a proxy."""
        lent = [f"{CERTIFICATES}:{CERTIFICATES}:ro", f"{self.folder}/pip.conf:/etc/pip.conf:ro"]
        volumes = [word for one in lent for word in ("--volume", one)] if CERTIFICATES.exists() else []
        given = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
        self.run(
            "buildah",
            "build",
            "--isolation",
            "chroot",
            "--pull-never",
            *volumes,
            *given,
            "--tag",
            image,
            context,
        )


class EngineFailed(Exception):
    """A step failed; the text names it and quotes its output."""
