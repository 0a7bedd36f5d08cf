"""The image and the compose file: linted, which needs no container engine, and read for what matters."""

import os
import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from faultline.store import calls
from faultline.store.migrate import migrate
from scripts import tools
from tests.deploy import shipped
from tests.deploy.shipped import ROOT

TOOLS = Path(sys.executable).parent
PROMTOOL = shutil.which("promtool")
DOCKERFILE = (ROOT / "Dockerfile").read_text()
SERVICES = shipped.compose()["services"]
OF_OURS = {name: one for name, one in SERVICES.items() if one.get("image") == "faultline:local"}


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=ROOT)


def seconds(duration: str) -> int:
    minutes, rest = re.fullmatch(r"(?:(\d+)m)?(?:(\d+)s)?", duration).groups()
    return 60 * int(minutes or 0) + int(rest or 0)


def test_hadolint_finds_nothing_in_the_dockerfile():
    told = run(TOOLS / "hadolint", "Dockerfile")

    assert told.returncode == 0, told.stdout + told.stderr


def test_the_compose_file_is_what_the_specification_says():
    told = run(TOOLS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml")

    assert told.returncode == 0, told.stdout + told.stderr


def test_the_image_runs_as_nobody_in_particular_and_stops_when_told():
    assert re.search(r"^USER (\d+):(\d+)$", DOCKERFILE, re.MULTILINE)
    assert "\nSTOPSIGNAL SIGTERM\n" in DOCKERFILE
    assert len(re.findall(r"^FROM ", DOCKERFILE, re.MULTILINE)) == 2
    assert re.search(r'^CMD \["faultline"', DOCKERFILE, re.MULTILINE)


def test_the_image_takes_nothing_but_locked_packages():
    installs = re.findall(r"pip\S* (?:--python \S+ )?install (.*?)(?: \\)?$", DOCKERFILE, re.MULTILINE)

    assert len(installs) == 3
    for words in installs:
        assert "--require-hashes" in words or "--no-deps /wheels/*.whl" in words
    assert "://" not in DOCKERFILE


def test_only_what_is_named_goes_into_the_image():
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)

    assert ignored[1] == "*"
    for name in " ".join(copied).split():
        assert f"!{name}" in ignored


def test_the_locks_of_the_image_hold_what_the_others_hold():
    """The same versions with the same hashes, so what was tested is what is shipped."""
    tested = _packages("dev")

    for lock in ("server", "build"):
        for name, hashes in _packages(lock).items():
            assert tested[name] == hashes, name


@pytest.mark.parametrize(
    "package",
    ["fastapi", "uvicorn", "grpcio", "protobuf", "prometheus-client", "opentelemetry-api", "uvloop"],
)
def test_the_image_has_every_extra_it_may_need(package):
    assert any(name.startswith(f"{package}==") for name in _packages("server"))


def _packages(lock):
    text = (ROOT / f"requirements/{lock}.lock").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if re.match(r"[a-z0-9]", line)]
    return {line.split()[0]: sorted(re.findall(r"sha256:\w+", line)) for line in lines}


def test_the_database_keeps_its_data_where_postgres_18_has_it():
    db = SERVICES["db"]

    assert db["image"] == "postgres:18"
    assert "data:/var/lib/postgresql" in db["volumes"]
    assert db["healthcheck"]["test"][:2] == ["CMD", "pg_isready"]
    assert "ports" not in db


def test_nothing_can_be_reached_from_other_machines_and_no_password_is_written_down():
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    text = (ROOT / "compose.yaml").read_text()

    assert len(published) == 4
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert not re.search(r"PASSWORD: |://\w+:\w+@", text)


def test_whoever_needs_the_schema_waits_for_the_migration():
    assert SERVICES["migrate"]["depends_on"]["db"]["condition"] == "service_healthy"
    for name, before in {"server": "keys", "worker": "migrate", "keys": "migrate"}.items():
        assert SERVICES[name]["depends_on"][before]["condition"] == "service_completed_successfully"


@pytest.mark.parametrize("name", OF_OURS)
def test_ours_run_with_nothing_they_do_not_need(name):
    service = OF_OURS[name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["init"] is True


@pytest.mark.parametrize("name", ["server", "worker"])
def test_a_container_is_given_longer_to_stop_than_it_takes(name):
    words = " ".join(SERVICES[name]["command"])
    grace = seconds(re.search(r"--grace[ =](\w+)", words)[1])

    assert seconds(SERVICES[name]["stop_grace_period"]) >= grace + 10


def test_every_file_that_is_mounted_is_there():
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            if volume.startswith("./"):
                assert (ROOT / volume.split(":")[0]).exists(), volume


def test_passwords_are_made_once_and_kept(tmp_path):
    """The script itself, as `sh` runs it; who owns a file cannot be tried without being root."""
    (script,) = SERVICES["secrets"]["command"]
    script = script.replace("$$", "$").replace("/secrets", str(tmp_path)).replace("chown", "true chown")

    for _ in range(2):
        subprocess.run(["sh", "-euc", script], check=True, env={"PATH": os.environ["PATH"], "LC_ALL": "C"})
        password = (tmp_path / "password").read_text()
        seen = {file.name: file.read_text() for file in tmp_path.iterdir() if file.is_file()}

    assert len(password) == 40
    assert seen["pgpass"] == f"db:5432:faultline:faultline:{password}\n"
    assert len({seen[name] for name in ("password", "superuser", "grafana")}) == 3
    assert (tmp_path / "pgpass").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "password").read_text() == password


@pytest.mark.skipif(shutil.which("psql") is None, reason=tools.why_not("psql"))
def test_the_compose_database_belongs_to_a_role_that_is_no_superuser(server, tmp_path):
    """The image of PostgreSQL runs this script once; here psql runs it on the tests' own server."""
    name = f"compose_{secrets.token_hex(4)}"
    (tmp_path / "password").write_text("made up")
    script = (ROOT / "deploy/postgres/10-database.sh").read_text()
    script = script.replace("/secrets", str(tmp_path)).replace(" faultline", f" {name}")
    here = conninfo_to_dict(server.dsn())
    script = script.replace("--username postgres", f"--username {here['user']}")
    place = {"PGHOST": str(here["host"]), "PGPORT": str(here.get("port", 5432))}

    subprocess.run(["sh", "-c", script], check=True, env={**os.environ, **place}, capture_output=True)

    try:
        dsn = make_conninfo(server.dsn(name), user=name, password="made up")
        assert migrate(dsn).number == 0
        with psycopg.connect(dsn) as conn:
            owner = "select distinct pg_get_userbyid(proowner), rolsuper from pg_proc join pg_roles on"
            where = "pg_roles.oid = proowner where pronamespace = 'faultline'::regnamespace"
            assert conn.execute(f"{owner} {where}").fetchall() == [(name, False)]
    finally:
        server.drop_database(name)
        with psycopg.connect(server.dsn(), autocommit=True) as conn:
            conn.execute(f"drop role {name}")


def test_prometheus_scrapes_those_who_are_there_with_the_key_that_is_made():
    config = shipped.read(ROOT / "deploy/prometheus/prometheus.yml")
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    (script,) = SERVICES["keys"]["command"][2:]

    (target,) = jobs["faultline-server"]["static_configs"][0]["targets"]
    key = Path(jobs["faultline-server"]["authorization"]["credentials_file"])
    assert target.split(":")[0] in SERVICES
    assert key.parent == Path("/secrets/keys")
    assert f"key {key.name} read\n" in script
    (workers,) = jobs["faultline-worker"]["dns_sd_configs"]
    assert workers["names"] == ["worker"]
    assert f"0.0.0.0:{workers['port']}" in SERVICES["worker"]["command"]


@pytest.mark.skipif(PROMTOOL is None, reason=tools.why_not("promtool"))
def test_promtool_understands_the_configuration():
    told = run(PROMTOOL, "check", "config", "--syntax-only", "deploy/prometheus/prometheus.yml")

    assert told.returncode == 0, told.stdout + told.stderr


def test_grafana_is_provisioned_with_the_dashboard_and_the_prometheus_beside_it():
    provisioning = ROOT / "deploy/grafana/provisioning"
    (source,) = shipped.read(provisioning / "datasources/prometheus.yaml")["datasources"]
    (provider,) = shipped.read(provisioning / "dashboards/faultline.yaml")["providers"]

    assert source["url"] == "http://prometheus:9090"
    mounted = [
        volume.split(":")[1] for volume in SERVICES["grafana"]["volumes"] if "faultline.json" in volume
    ]
    assert [str(Path(file).parent) for file in mounted] == [provider["options"]["path"]]


def test_api_keys_are_made_once_and_only_one_is_for_others_to_read(database, store, tmp_path):
    """The script itself, with the program itself, on a real database."""
    (tmp_path / "keys").mkdir()
    (script,) = SERVICES["keys"]["command"][2:]
    script = (
        script.replace("$$", "$").replace("/secrets", str(tmp_path)).replace("/tmp/key", f"{tmp_path}/key")
    )
    here = {"PATH": f"{TOOLS}:{os.environ['PATH']}", "FAULTLINE_DSN": database}

    for _ in range(2):
        subprocess.run(["sh", "-euc", script], check=True, env={**os.environ, **here}, capture_output=True)
        seen = {file.name: file.read_text().strip() for file in (tmp_path / "keys").iterdir()}

    assert {key.name: key.scopes for key in store.run(calls.list_keys())} == {
        "admin": ["admin"],
        "prometheus": ["read"],
    }
    assert all(text.startswith("flk_") for text in seen.values())
    modes = {name: (tmp_path / "keys" / name).stat().st_mode & 0o777 for name in seen}
    assert modes == {"admin": 0o600, "prometheus": 0o644}
