# Everything runs in ./.venv, which is made on first use from the hash-checked locks in requirements/.

JOBS  ?= 8
TESTS ?=
ARGS  ?=
NAME  ?= lease-race
RUNS  ?= 10
UV    ?= uv
COMPOSE ?= docker compose

# Tests and proofs start thousands of processes: without bytecode on disk each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

CANDIDATES = python3 python3.14 python3.13 python3.12 python3.11
USABLE     = import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON    ?= $(shell for p in $(CANDIDATES); do $$p -c '$(USABLE)' >/dev/null 2>&1 && echo $$p && break; done)

RESOLVE = $(UV) pip compile --no-config --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --custom-compile-command "make lock" --quiet
COMPILE = $(RESOLVE) pyproject.toml requirements/build.in
IMAGE   = --extra server --extra grpc --extra metrics --extra tracing --extra fast

PROTO_COMPILE = $(UV) pip compile --no-config --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --custom-compile-command "make lock" --quiet requirements/proto.in

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types imports format lease-race lease-race-log drill drills bench compare compare-page lock clean \
	prove soak explore mutants nemesis failpoints model properties cases prove-audit image-check release-check ha migrate pin openapi proto \
	proto-check tools test-tools docs demo-env dev-env model-env docs-env

help:  ## list these verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

demo: demo-env  ## see a crash survived: jobs, a frozen worker, its refused write, the verdict
	@.venv/bin/faultline demo $(ARGS)

test: dev-env test-tools  ## run the tests (TESTS=tests/sql, JOBS=8, ARGS='-k name')
	@.venv/bin/python -m pytest -n $(JOBS) --dist worksteal $(ARGS) $(TESTS)

check: lint types imports  ## lint, types and import contracts

lint: dev-env  ## ruff: lint and formatting
	@.venv/bin/python -m ruff check
	@.venv/bin/python -m ruff format --check

types: dev-env  ## mypy, strict
	@.venv/bin/python -m mypy

imports: dev-env  ## the import contracts
	@.venv/bin/lint-imports --no-logo

format: dev-env  ## let ruff lay the code out
	@.venv/bin/python -m ruff check --fix
	@.venv/bin/python -m ruff format

lease-race: demo-env  ## the race: a frozen worker loses its job and cannot commit
	@.venv/bin/faultline drill lease-race $(ARGS)

lease-race-log: demo-env  ## the race, as structured events: one JSON object a line
	@.venv/bin/faultline drill lease-race --log-json $(ARGS)

drill: demo-env  ## any drill (NAME=worker-crash)
	@.venv/bin/faultline drill $(NAME) $(ARGS)

bench: demo-env  ## drain 20k no-op jobs and say how fast; any scenario with ARGS='NAME --quick'
	@.venv/bin/faultline bench $(or $(ARGS),drain --jobs 20000 --workers 1 --keep full)

# Proof: what `make test` is too short for. Each verb ends with a table and a verdict of its own.
prove: explore mutants nemesis  ## the quick proofs of .ci/run: explorer, mutants, a three-minute nemesis

soak: dev-env test-tools  ## the tests many times: busy cores, young and old clocks, random order (RUNS=10, TESTS=tests/sql)
	@.venv/bin/python -m proof.soak --runs $(RUNS) --jobs $(JOBS) $(ARGS) $(TESTS)

explore: demo-env  ## every interleaving of the shipped SQL over real sessions (ARGS=--quick, ARGS=--mutants)
	@.venv/bin/python -m proof.explorer $(ARGS)

mutants: dev-env  ## take every mechanism away once: the test that must notice turns red, or this fails (ARGS='G4 --write')
	@.venv/bin/python -m proof.mutants $(ARGS)

nemesis: dev-env  ## real workers under a seeded storm of faults, then the checker (ARGS='--seed 7 --minutes 3')
	@.venv/bin/python -m proof.nemesis $(ARGS)

failpoints: dev-env  ## kill and freeze real processes at every named fail point; the oracle after each
	@.venv/bin/python -m proof.failpoints $(ARGS)

drills: dev-env  ## every drill (ARGS='--report drills.html'); ARGS=--sabotage: each, sabotaged, must turn red
	@.venv/bin/python -m proof.drills $(ARGS)

model: dev-env model-env  ## TLC on the TLA+ model and its mutants, and real ledgers against the same relation
	@.venv/bin/python -m proof.model $(ARGS)

properties: dev-env  ## Hypothesis: long histories on real PostgreSQL against a reference, and the mutants it must notice
	@.venv/bin/python -m proof.properties $(ARGS)

cases: dev-env  ## the slow cases of docs/cases.md, and the tests too long for `make test` (JOBS=2, ARGS='-k n9')
	@.venv/bin/python -m pytest -n $(JOBS) --dist worksteal $(ARGS) proof/cases
	@.venv/bin/python -m pytest -n $(JOBS) --dist worksteal -m long $(ARGS) tests

prove-audit: dev-env  ## the audit on a big ledger and on a database at work, beside `make test`'s cases
	@.venv/bin/python -m pytest -p no:cacheprovider $(ARGS) proof/audit

image-check: dev-env  ## build the image and run compose.yaml for real, with buildah and podman (root; installs them with apt)
	@.venv/bin/python -m proof.image $(ARGS)

ha: dev-env  ## three nodes under Patroni, every failover, upgrade and restore, and a judge (root; 30 minutes; ARGS='--list')
	@.venv/bin/python -m proof.ha $(ARGS)

release-check: demo-env  ## build the packages, install the wheel into an empty environment, run the demo from it
	@.venv/bin/python scripts/release_check.py $(ARGS)

pin:  ## write the digests of compose.yaml's images into .env, as their registry has them now
	@$(PYTHON) scripts/pin.py $(ARGS)

migrate: demo-env  ## install or update the schema: FAULTLINE_DSN, a running `faultline dev`, or `docker compose up`
	@COMPOSE="$(COMPOSE)" .venv/bin/python scripts/migrate.py $(ARGS)

openapi: dev-env  ## write docs/openapi.json again, after a change of the HTTP API
	@.venv/bin/python -m faultline.server.http.openapi docs/openapi.json

docs: docs-env  ## the documentation as a site in site/, with references made from the sources; every link is checked
	@.venv-docs/bin/python -m scripts.docs

compare: dev-env  ## Faultline beside its peers: installs them apart, measures, makes docs/benchmarks.md
	@.venv/bin/python -m benchmarks.peers $(ARGS)

compare-page: dev-env  ## docs/benchmarks.md and its plots again, from the JSON that is there
	@.venv/bin/python -m benchmarks.peers page $(ARGS)

tools:  ## fetch the programs that tests use and pip cannot bring: PgBouncer, promtool, Chromium (apt; nothing is installed)
	@$(PYTHON) scripts/tools.py --again $(ARGS)

proto:  ## generate src/faultline/rpc from proto/
	@$(PYTHON) scripts/proto.py

proto-check:  ## whether src/faultline/rpc is what proto/ makes
	@$(PYTHON) scripts/proto.py --check

lock:  ## resolve requirements/*.lock again (needs uv on PATH: pip install uv)
	@$(COMPILE) --upgrade --extra dev --extra embedded --extra fast --extra bench --extra server --extra grpc --extra metrics --extra tracing -o requirements/dev.lock >/dev/null
	@$(COMPILE) --constraints requirements/dev.lock --extra embedded --extra fast -o requirements/demo.lock >/dev/null
	@$(RESOLVE) pyproject.toml --constraints requirements/dev.lock $(IMAGE) -o requirements/server.lock >/dev/null
	@$(RESOLVE) requirements/build.in --constraints requirements/dev.lock -o requirements/build.lock >/dev/null
	@$(PROTO_COMPILE) -o requirements/proto.lock >/dev/null
	@$(RESOLVE) requirements/ha.in --upgrade -o requirements/ha.lock >/dev/null
	@$(COMPILE) requirements/docs.in --constraints requirements/dev.lock -o requirements/docs.lock >/dev/null
	@if grep -nE '://|find-links|index-url' requirements/*.lock; then echo "a lock names an address" >&2; exit 1; fi

clean:  ## delete .venv, caches, the site and the data of `faultline dev`
	@rm -rf .venv .venv-docs .venv-proto .venv.lock build site .faultline dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find src tests scripts benchmarks proof -name __pycache__ -type d -prune -exec rm -rf {} +

# What is missing is told in a line each, and its tests are skipped. `make tools` tries again what failed within the last hour.
test-tools:
	@$(PYTHON) scripts/tools.py

demo-env dev-env model-env docs-env:
	@if [ -z "$(PYTHON)" ]; then \
		echo "faultline: no Python 3.11 or newer with venv was found; install one (Debian: apt install python3-venv)" >&2; \
		exit 1; \
	fi
	@$(PYTHON) scripts/environment.py $(@:-env=)
