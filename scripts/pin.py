"""`make pin`: write the digests of the images that compose.yaml names into .env, as the registry has them.

Usage: python3 scripts/pin.py [--registry URL]. A digest is the SHA-256 of the manifest that the registry has
for a tag; it is computed here from what came. Other lines of .env stay as they are. It needs the standard
library alone.
"""

import argparse
import hashlib
import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REGISTRY = "https://registry-1.docker.io"
NAMED = re.compile(r"\$\{(\w+_IMAGE):-([^@}]+)\}")
CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
MANIFESTS = ", ".join(
    [
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    ]
)
SECONDS_MAX = 30


def main() -> int:
    parser = argparse.ArgumentParser(description="pin the images of compose.yaml by digest, in .env")
    parser.add_argument("--registry", default=REGISTRY, help="another registry, such as a mirror")
    parser.add_argument("--file", type=Path, default=ROOT / ".env", help="where to write them")
    asked = parser.parse_args()
    try:
        pins = {name: f"{image}@{digest(image, asked.registry)}" for name, image in images().items()}
    except ValueError as error:
        print(f"no image was pinned, {asked.file} is as it was: {error}", file=sys.stderr)
        return 1
    write(asked.file, pins)
    for name, pin in pins.items():
        print(f"{name}={pin}")
    return 0


def images() -> dict[str, str]:
    """The images by the variable that replaces each: `{"POSTGRES_IMAGE": "postgres:18"}`."""
    return dict(NAMED.findall((ROOT / "compose.yaml").read_text()))


def digest(image: str, registry: str) -> str:
    """The digest of what a tag stands for: of the list for all platforms, where there is one."""
    name, _, tag = image.partition(":")
    repository = name if "/" in name else f"library/{name}"
    url = f"{registry}/v2/{repository}/manifests/{tag}"
    try:
        manifest = _manifest(url)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{url}: {error}") from None
    return f"sha256:{hashlib.sha256(manifest).hexdigest()}"


def _manifest(url: str) -> bytes:
    try:
        found = _get(url)
    except urllib.error.HTTPError as refused:
        if refused.code != 401:
            raise
        found = _get(url, _token(refused.headers.get("WWW-Authenticate", "")))
    if "schemaVersion" not in json.loads(found):
        raise ValueError("what came is no manifest")
    return found


def _token(challenge: str) -> str:
    """What a registry wants to be shown, even by an anonymous client."""
    told = dict(CHALLENGE.findall(challenge))
    query = urllib.parse.urlencode({name: told[name] for name in ("service", "scope") if name in told})
    reply = json.loads(_get(f"{told['realm']}?{query}"))
    return str(reply.get("token") or reply["access_token"])


def _get(url: str, token: str | None = None) -> bytes:
    headers = {"Accept": MANIFESTS} | ({"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=SECONDS_MAX) as reply:
        body: bytes = reply.read()
    return body


def write(file: Path, pins: dict[str, str]) -> None:
    before = file.read_text().splitlines() if file.exists() else []
    kept = [line for line in before if line.partition("=")[0] not in pins]
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(
        "".join(f"{line}\n" for line in [*kept, *(f"{name}={pin}" for name, pin in pins.items())])
    )
    draft.rename(file)


if __name__ == "__main__":
    sys.exit(main())
