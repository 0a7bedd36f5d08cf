"""The chart, and the manifests it gives: valid, least-privileged, and with the time to drain."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from faultline.store import calls
from scripts import chart, tools
from tests.deploy import shipped
from tests.deploy.shipped import ROOT
from tests.support import enqueue

OLDEST, NEWEST = "1.27", kubernetes_validate.latest_version()
VARIANTS = {
    "as it comes": {},
    "with its own TLS": {"server.behindProxy": False, "server.tlsSecret": "faultline-tls"},
    "scaled by the database": {"scaling.enabled": True},
    "scaled by Prometheus": {"scaling.enabled": True, "scaling.trigger": "prometheus"},
    "workers alone": {"server.enabled": False, "migrate.enabled": False, "podAnnotations": {"a": "b"}},
    "with much time": {"worker.graceSeconds": 600, "tolerations": [{"key": "jobs", "operator": "Exists"}]},
}
KUSTOMIZATIONS = sorted((ROOT / "deploy").glob("kubernetes*/kustomization.yaml"))
variants = pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())


def documents(changes):
    """Every manifest of a variant, by its name."""
    rendered = chart.manifests(chart.values(**changes), release="mine")
    return {name: yaml.safe_load(text) for name, text in rendered.items()}


def pods(found):
    owners = {name: one["spec"] for name, one in found.items() if "template" in one.get("spec", {})}
    return {name: one["template"]["spec"] for name, one in owners.items()}


def test_the_plain_manifests_are_what_the_chart_gives():
    for file, text in chart.plain().items():
        assert file.read_text() == text, f"{file.name}: run `python scripts/chart.py`"
    assert set(shipped.MANIFESTS) == set(chart.plain())


@variants
def test_kubernetes_understands_every_manifest(changes):
    for name, document in documents(changes).items():
        if not document["apiVersion"].startswith("keda.sh/"):
            assert kubernetes_validate.validate(document, NEWEST, strict=True), name


def test_so_does_the_oldest_that_the_chart_says_it_runs_on():
    said = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())["kubeVersion"]
    assert said.startswith(f">={OLDEST}.")

    for name, document in documents(VARIANTS["with its own TLS"]).items():
        assert kubernetes_validate.validate(document, OLDEST, strict=True), name


def test_a_kustomization_names_every_manifest_beside_it():
    for file in KUSTOMIZATIONS:
        beside = {one.name for one in file.parent.glob("*.yaml")} - {file.name}

        assert {name for name in shipped.read(file)["resources"] if "/" not in name} == beside


def test_no_kustomization_stands_on_a_folder_that_holds_it():
    """kubectl refuses that as a cycle, whatever the files say."""
    for file in KUSTOMIZATIONS:
        resources = shipped.read(file)["resources"]
        folders = [file.parent / name for name in resources if not name.endswith(".yaml")]

        assert all((folder / "kustomization.yaml").is_file() for folder in folders)
        assert not any(file.is_relative_to(folder.resolve()) for folder in folders)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason=tools.why_not("kubectl"))
@pytest.mark.parametrize("file", KUSTOMIZATIONS, ids=lambda file: file.parent.name)
def test_kubectl_builds_every_kustomization(file):
    built = subprocess.run(
        ["kubectl", "kustomize", file.parent], capture_output=True, text=True, timeout=60, check=False
    )

    assert built.returncode == 0, built.stderr
    kinds = [one["kind"] for one in yaml.safe_load_all(built.stdout)]
    assert kinds.count("Deployment") == 2
    assert ("ScaledObject" in kinds) == (file.parent == chart.SCALED)


@variants
def test_no_pod_has_more_rights_than_it_needs(changes):
    for name, pod in pods(documents(changes)).items():
        (container,) = pod["containers"]
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 10001
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "cpu" not in container["resources"].get("limits", {})


@variants
def test_secrets_are_referred_to_and_never_made(changes):
    found = documents(changes)

    assert "Secret" not in {one["kind"] for one in found.values()}
    for name, pod in pods(found).items():
        variables = {one["name"]: one for one in pod["containers"][0]["env"]}
        assert "secretKeyRef" in variables["FAULTLINE_DSN"]["valueFrom"], name


@variants
def test_a_worker_has_its_grace_and_ten_seconds_more(changes):
    worker = pods(documents(changes))["worker-deployment.yaml"]
    (grace,) = re.findall(r"--grace=(\d+)s", " ".join(worker["containers"][0]["command"]))

    assert worker["terminationGracePeriodSeconds"] == int(grace) + 10


def test_probes_of_a_worker_do_not_ask_the_database():
    """One that is away for a while must not have every worker restarted."""
    (worker,) = pods(documents({}))["worker-deployment.yaml"]["containers"]

    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert worker[probe]["exec"]["command"][:3] == ["faultline", "health", "--alive"]
    file = {one["name"]: one.get("value") for one in worker["env"]}["FAULTLINE_ALIVE_FILE"]
    assert Path(file).parent in [Path(mount["mountPath"]) for mount in worker["volumeMounts"]]


def test_only_readiness_of_a_server_depends_on_the_database():
    (server,) = pods(documents({}))["server-deployment.yaml"]["containers"]

    paths = [
        server[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")
    ]
    assert paths == ["/healthz", "/healthz", "/readyz"]


def test_where_a_scaler_sets_the_replicas_no_manifest_does():
    scaled = documents({"scaling.enabled": True})
    (target,) = scaled["worker-scaling.yaml"]["spec"]["triggers"]

    assert "replicas" not in scaled["worker-deployment.yaml"]["spec"]
    assert scaled["worker-scaling.yaml"]["spec"]["scaleTargetRef"]["name"] == "mine-worker"
    assert target["authenticationRef"]["name"] == scaled["scaling-auth.yaml"]["metadata"]["name"]
    assert target["metadata"]["query"] == "select faultline.backlog('default')"


def test_the_query_of_the_scaler_gives_one_number(store, db):
    enqueue(store)
    query = documents({"scaling.enabled": True})["worker-scaling.yaml"]["spec"]["triggers"][0]["metadata"][
        "query"
    ]

    assert db.execute(query).fetchall() == [(1,)] == [(store.run(calls.backlog("default")),)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"image.tag": "latest"},
        {"server.behindProxy": False},
        {"worker.app": "shop/jobs.py"},
        {"scaling.queue": "x'); drop table y --"},
        {"worker.graceSeconds": -1},
        {"database.pooler": "statement"},
    ],
    ids=str,
)
def test_values_that_cannot_work_are_refused(wrong, tmp_path):
    assert _schema_says(chart.values(**wrong), tmp_path) == 1


def test_the_values_as_they_come_are_not(tmp_path):
    assert _schema_says(chart.values(), tmp_path) == 0


def _schema_says(values, tmp_path):
    from check_jsonschema import main as check

    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    words = ["--schemafile", str(chart.CHART / "values.schema.json"), str(file), "--quiet"]
    with pytest.raises(SystemExit) as left:
        check(words)
    return left.value.code


@pytest.mark.parametrize(
    "template",
    [
        '{{ include "x" . }}',
        "{{ .Values.nothing }}",
        "{{- if .Values.worker.enabled }}",
        "a: {{ .Values.worker }}",
        "{{- range .Values.worker }}",
        "  {{- end }}",
    ],
)
def test_a_template_form_that_is_not_known_is_refused(template):
    """Else what is validated here might not be what Helm makes of it."""
    with pytest.raises((chart.NotUnderstood, IndexError)):
        chart.render(template, chart.values())


def test_every_value_is_used_and_the_script_can_be_run():
    templates = "".join(file.read_text() for file in (chart.CHART / "templates").iterdir())

    for name, value in chart.values().items():
        names = [f"{name}.{inner}" for inner in value] if isinstance(value, dict) and value else [name]
        for path in names:
            assert f".Values.{path}" in templates, path
    assert subprocess.run([sys.executable, "scripts/chart.py"], cwd=ROOT, capture_output=True).returncode == 0
