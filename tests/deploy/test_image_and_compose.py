"""The image and the compose file: linted, and read for what matters. `make image-check` runs them."""

import os
import re
import secrets
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from faultline.errors import PermissionDenied
from faultline.store import calls
from faultline.store.migrate import migrate
from faultline.store.pool import Store
from scripts import tools
from tests.deploy import shipped
from tests.deploy.shipped import ROOT
from tests.support import claim_one, enqueue, new_job

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


def test_the_image_runs_without_root_and_stops_when_told():
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

    assert db["image"] == "${POSTGRES_IMAGE:-postgres:18}"
    assert "data:/var/lib/postgresql" in db["volumes"]
    assert db["healthcheck"]["test"][:2] == ["CMD", "pg_isready"]
    assert "ports" not in db


def test_nothing_can_be_reached_from_other_machines_and_no_password_is_written_down():
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    text = (ROOT / "compose.yaml").read_text()

    assert len(published) == 4
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert not re.search(r"PASSWORD: |://\w+:\w+@", text)


def test_services_that_need_the_schema_wait_for_the_migration():
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


def test_passwords_are_made_once_and_kept_apart(tmp_path):
    """The script itself, as `sh` runs it; who owns a file is seen when it is run: `make image-check`."""
    (script,) = SERVICES["secrets"]["command"]
    script = script.replace("$$", "$").replace("/secrets", str(tmp_path)).replace("chown", "true chown")
    for volume in SERVICES["secrets"]["volumes"]:
        (tmp_path / volume.rpartition("/")[2]).mkdir()

    seen: list[dict[str, str]] = []
    for _ in range(2):
        subprocess.run(["sh", "-euc", script], check=True, env={"PATH": os.environ["PATH"], "LC_ALL": "C"})
        files = [file for file in tmp_path.rglob("*") if file.is_file() and file.name != "complete"]
        seen.append({str(file.relative_to(tmp_path)): file.read_text() for file in files})

    passwords = {name: text for name, text in seen[0].items() if name.startswith("database/")}
    assert {len(password) for password in passwords.values()} == {40}
    assert len({*passwords.values(), seen[0]["grafana/password"]}) == 5
    for login in ("owner", "server", "worker"):
        assert seen[0][f"{login}/pgpass"] == f"db:5432:faultline:{login}:{passwords[f'database/{login}']}\n"
        assert (tmp_path / login / "pgpass").stat().st_mode & 0o777 == 0o600
    assert seen[0] == seen[1]


def _mounted(name: str) -> dict[str, str]:
    return dict(volume.split(":")[:2] for volume in SERVICES[name].get("volumes", []))


@pytest.mark.parametrize(
    ("name", "read"),
    {
        "migrate": {"owner-secrets"},
        "keys": {"server-secrets", "keys", "prometheus-key"},
        "server": {"server-secrets"},
        "worker": {"worker-secrets"},
        "prometheus": {"prometheus-key"},
        "grafana": {"grafana-secrets"},
        "db": {"database-secrets"},
    }.items(),
)
def test_every_program_reads_its_own_secrets_and_no_other(name, read):
    """A worker runs its users' code: what it can read, that code can. The admin key is in `keys`."""
    secret = {volume for volume, place in _mounted(name).items() if place.startswith("/secrets")}

    assert secret == read
    if login := re.search(r"//(\w+)@db/.*passfile=/secrets/(\w+)/", str(SERVICES[name].get("environment"))):
        assert f"{login[1]}-secrets" in read
        assert login[1] == login[2]


def test_every_image_of_others_is_named_in_one_place_and_can_be_pinned():
    named = {one["image"] for one in SERVICES.values()} - {"faultline:local"}
    python = {one["build"]["args"]["PYTHON"] for one in OF_OURS.values()}

    assert named | python == set(shipped.compose()["x-images"])
    assert all(re.fullmatch(r"\$\{\w+_IMAGE:-[\w./-]+:[\w.-]+\}", image) for image in named | python)
    assert not any(":latest" in image for image in named)
    base = re.search(r"^ARG PYTHON=(.*)$", DOCKERFILE, re.MULTILINE)[1]
    assert python == {f"${{PYTHON_IMAGE:-{base}}}"}


@pytest.fixture
def composed(server, tmp_path):
    """The database of compose.yaml, made by the script that its image runs once: the DSN of each login."""
    if shutil.which("psql") is None:
        pytest.skip(tools.why_not("psql"))
    mark = f"c{secrets.token_hex(4)}"
    for login in ("owner", "server", "worker"):
        (tmp_path / login).write_text(f"made up for {login}")
    script = (ROOT / "deploy/postgres/10-database.sh").read_text().replace("/secrets", str(tmp_path))
    here = conninfo_to_dict(server.dsn())
    script = script.replace("--username postgres", f"--username {here['user']}")
    # Roles belong to the whole server, which other tests use at the same time: each gets a name of its own.
    script = re.sub(r"\b(faultline|faultline_\w+|owner|server|worker)\b(?=[ ;,])", rf"{mark}_\1", script)
    script = script.replace(
        f"database {mark}_faultline {mark}_owner {mark}_owner",
        f"database {mark}_faultline owner {mark}_owner",
    )
    place = {"PGHOST": str(here["host"]), "PGPORT": str(here.get("port", 5432))}
    done = subprocess.run(["sh", "-c", script], env={**os.environ, **place}, capture_output=True, text=True)
    try:
        assert done.returncode == 0, script + done.stderr
        yield (
            lambda login: make_conninfo(
                server.dsn(f"{mark}_faultline"), user=f"{mark}_{login}", password=f"made up for {login}"
            ),
            f"{mark}_faultline_",
        )
    finally:
        server.drop_database(f"{mark}_faultline")
        with psycopg.connect(server.dsn(), autocommit=True) as conn:
            for (role,) in conn.execute(
                "select rolname from pg_roles where rolname ^@ %s", [mark]
            ).fetchall():
                conn.execute(f"drop role {role}")


def test_the_compose_database_belongs_to_a_role_that_is_no_superuser(composed):
    login, _ = composed

    assert migrate(login("owner")).number == 0

    with psycopg.connect(login("owner")) as conn:
        owner = (
            "select distinct pg_get_userbyid(proowner) = current_user, rolsuper, rolcreaterole from pg_proc"
        )
        where = "join pg_roles on pg_roles.oid = proowner where pronamespace = 'faultline'::regnamespace"
        assert conn.execute(f"{owner} {where}").fetchall() == [(True, False, False)]


def test_the_compose_worker_has_a_login_that_may_work_and_nothing_else(composed):
    """The groups are there already, so the owner grants them their duties without the right to make roles."""
    login, prefix = composed
    migrate(login("owner"))
    with closing(Store(login("owner"))) as owner:
        made = owner.run(calls.make_roles(prefix, False))
        assert made == []

    with closing(Store(login("server"))) as server, closing(Store(login("worker"))) as worker:
        job = enqueue(server, task="fetch")
        assert claim_one(worker).job_id == job
        with pytest.raises(PermissionDenied):
            worker.run(calls.list_keys())
        with pytest.raises(PermissionDenied):
            worker.run(calls.pause("default"))
        with pytest.raises(PermissionDenied):
            worker.run(calls.enqueue(new_job(task="fetch")))
    with psycopg.connect(login("worker")) as conn, pytest.raises(psycopg.errors.InsufficientPrivilege):
        conn.execute("select claim from faultline.active")


def test_prometheus_scrapes_the_running_services_with_the_key_that_is_made():
    config = shipped.read(ROOT / "deploy/prometheus/prometheus.yml")
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    (script,) = SERVICES["keys"]["command"][2:]

    (target,) = jobs["faultline-server"]["static_configs"][0]["targets"]
    key = Path(jobs["faultline-server"]["authorization"]["credentials_file"])
    assert target.split(":")[0] in SERVICES
    assert _mounted("prometheus")["prometheus-key"] == str(key.parent)
    assert f"key prometheus read {_mounted('keys')['prometheus-key']}/{key.name}\n" in script
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
    for folder in ("keys", "prometheus"):
        (tmp_path / folder).mkdir()
    (script,) = SERVICES["keys"]["command"][2:]
    script = (
        script.replace("$$", "$").replace("/secrets", str(tmp_path)).replace("/tmp/key", f"{tmp_path}/key")
    )
    here = {"PATH": f"{TOOLS}:{os.environ['PATH']}", "FAULTLINE_DSN": database}

    for _ in range(2):
        subprocess.run(["sh", "-euc", script], check=True, env={**os.environ, **here}, capture_output=True)
        files = {name: tmp_path / name for name in ("keys/admin", "prometheus/key")}
        seen = {name: file.read_text().strip() for name, file in files.items()}

    assert {key.name: key.scopes for key in store.run(calls.list_keys())} == {
        "admin": ["admin"],
        "prometheus": ["read"],
    }
    assert all(text.startswith("flk_") for text in seen.values())
    modes = {name: file.stat().st_mode & 0o777 for name, file in files.items()}
    assert modes == {"keys/admin": 0o600, "prometheus/key": 0o644}
