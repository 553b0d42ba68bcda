# Everything on a fresh machine that has Python 3.11+, Java 17+ and make. `make help` lists the targets.
# Services that the environment does not give (DATABASE_URL, REDIS_URL, SPARK_REMOTE) are started by the launcher.
VENV ?= .venv
PYTHON ?= python3
ARGS ?=
TEST_WORKERS ?= 4
PY := $(VENV)/bin/python
LAUNCH := $(PY) -m workers.embedded
# What is thrown away at the end is kept in memory where there is room: a table there costs a quarter of one on a disk.
ROOM := df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 >= 10485760 { print "/dev/shm" }'
# Small, so that what a test wrote is written over by the next one: memory that nobody touched before is dear on many machines.
SMALL := FENCEPOST_POSTGRES_OPTIONS="shared_buffers=64MB max_wal_size=256MB min_wal_size=80MB wal_init_zero=off"
TEMPORARY := TMPDIR=$${TMPDIR:-$$($(ROOM))} $(SMALL) $(LAUNCH) --temporary
FAST := tests/unit tests/contract tests/integration/kit
FAULTS := tests/faults tests/spark/test_cluster.py

# Each of the many processes that a run starts would compile the code again: a fifth of the tests' processor time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv demo kinds errors presets readme test faults test-fast kit-release lint format types contracts audit-code check bench chaos explore histories guards worker pager web shell manage clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

venv:  ## .venv with the pinned requirements, installed again only when requirements.txt changed
	@if ! cmp -s requirements.txt $(VENV)/requirements.installed; then \
		$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
			|| { echo "Python 3.11 or newer is needed ($(PYTHON) is not): install it, or make PYTHON=python3.12 …" >&2; exit 3; }; \
		test -x $(PY) || $(PYTHON) -m venv $(VENV) \
			|| { rm -rf $(VENV); echo "venv is missing: install it (Debian, Ubuntu: apt install python3-venv)" >&2; exit 3; }; \
		echo "Installing requirements into $(VENV) (about a minute) …" >&2; \
		$(PY) -m pip install --disable-pip-version-check --quiet --requirement requirements.txt >&2 \
			&& cp requirements.txt $(VENV)/requirements.installed; \
	fi

demo: venv  ## the incident, from crash to exactly once (ARGS="--once --json")
	@FENCEPOST_HTTPS=false $(LAUNCH) -v -- sh -c '$(PY) manage.py migrate -v 0 && exec $(PY) manage.py demo "$$@"' sh $(ARGS)

manage: venv  ## one manage.py command on the demo's services (ARGS="pipelines list"); ./fencepost keeps its exit code
	@VENV=$(abspath $(VENV)) ./fencepost $(ARGS) || { code=$$?; \
		echo "The command ended with $$code. make itself ends with 2 for any code but 0; ./fencepost WORDS ends with the command's own." >&2; \
		exit $$code; }

shell: venv  ## a shell with the demo's services and their addresses
	@$(LAUNCH) -v -- $${SHELL:-sh}

web: venv  ## the pages, on this machine only
	@FENCEPOST_HTTPS=false $(LAUNCH) -v -- sh -c '$(PY) manage.py migrate -v 0 && exec $(PY) manage.py runserver $(ARGS)'

worker: venv  ## a Celery worker; it sweeps, too
	@$(LAUNCH) -v -- $(PY) -m celery -A workers.celery worker --queues spark,default --without-mingle --without-gossip $(ARGS)

pager: venv  ## the pager: evaluates alerts and delivers them (docs/alerts.md)
	@$(LAUNCH) -v -- $(PY) manage.py pager $(ARGS)

test: venv  ## every test but those of `make faults`, with all services, in four processes (ARGS="tests/unit -k name", TEST_WORKERS=0: in one)
	@$(TEMPORARY) -- $(PY) -m pytest -n $(TEST_WORKERS) $(addprefix --ignore ,$(FAULTS)) $(ARGS)

faults: venv  ## servers, workers and tasks killed at every step, silent wires, wrong clocks, a cluster of Spark: minutes
	@$(TEMPORARY) -- $(PY) -m pytest -n $(TEST_WORKERS) $(FAULTS) $(ARGS)

test-fast: venv  ## within a minute: rules, kernel, commands' answers and the sink kit, without Spark
	@$(TEMPORARY) --only postgres,redis -- $(PY) -m pytest -n 2 -m "not spark and not slow" $(FAST) $(ARGS)

kinds: venv  ## docs/kinds.md's table, from what the kinds declare
	@$(PY) -m recovery_api.domain.kinds.page docs/kinds.md

readme: venv  ## README's worked incident, from a real run of the demo
	@FENCEPOST_WRITE_README=1 $(TEMPORARY) -- $(PY) -m pytest tests/integration/test_demo.py -k a_second_one -q

lint: venv  ## ruff: rules and format
	@$(PY) -m ruff check . && $(PY) -m ruff format --check .

format: venv  ## ruff: mend what it can
	@$(PY) -m ruff check --fix . ; $(PY) -m ruff format .

types: venv  ## mypy
	@$(PY) -m mypy

contracts: venv  ## who may import whom
	@$(VENV)/bin/lint-imports

audit-code: venv  ## bandit over the code, pip-audit over what is installed
	@$(PY) .ci/audit_code.py

check: venv  ## Django's own checks, and no migration missing
	@$(PY) manage.py check --deploy --fail-level WARNING && $(PY) manage.py makemigrations --check --dry-run

chaos: venv  ## servers killed and workers stopped under recoveries, in random order (ARGS="--rounds 100 --seed 7")
	@FENCEPOST_HTTPS=false $(PY) -m tests.chaos $(ARGS)

guards: venv  ## each protection taken out in a copy: do its tests notice? (ARGS="--changed", ARGS="--only fence")
	@$(PY) -m tests.guards $(ARGS)

bench: venv  ## ratios, measured in one run (docs/performance.md)
	@FENCEPOST_SPARK_JAVA_OPTIONS="$${FENCEPOST_SPARK_JAVA_OPTIONS-}" $(LAUNCH) --temporary -v -- $(PY) -m tests.benchmarks $(ARGS)

errors: venv  ## docs/errors.md, from the codes
	@$(PY) -m recovery_api.errors_page > docs/errors.md

presets: venv  ## docs/presets.md, from the preset files
	@$(PY) -m recovery_api.presets.page > docs/presets.md

kit-release: venv  ## freeze today's text of the sink kit under its version number (ARGS=--again until it is installed anywhere)
	@$(PY) -m workers.connectors.sinks.kit.releases $(ARGS)
	@FENCEPOST_WRITE_FACTS=1 $(PY) -m workers.embedded --temporary --only postgres,redis -- $(PY) -m pytest tests/integration/kit/test_facts.py -q

histories: venv  ## random histories, audited incrementally and in full, beside what was generated (ARGS="--count 1000 --seed S")
	@$(PY) -m workers.embedded --temporary --only postgres,redis -- $(PY) -m tests.histories $(ARGS)

explore: venv  ## the protocol's model, explored at larger sizes (ARGS="--events 3 --recoverers 3")
	@$(PY) -m tests.stateful.model $(ARGS)

clean:  ## everything that was made here, data of the demo included
	rm -rf var .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
