# make demo    the main job on real data, to look at
# make demo-stream   a stream of real flights, whose graph is changed while it runs
# make test    all tests but the slow ones; TESTS="..." passes arguments to pytest
# make test-system    the slow ones: whole jobs that fail, are killed, cleared, backfilled (three quarters of an hour)
# make test-cluster   plans on real Spark workers and a real HDFS, and against recorded managers (some minutes)
# make test-faults    every order of the model; streams whose processes are killed in each state (at most 20 minutes)
# make test-proof    millions of rows through a stream that is changed three times, by replay, by an inbox, in turn
# make test-warm    hundreds of runs through one warm application, whose processes are killed at many points
# make test-versions  the driver program on the oldest and the newest Spark (tools/spark_versions.txt; some minutes)
# make test-cases     the cases of placement and pruning; DAGSCHED_CASES=folder takes others of the same form
# make lint    ruff, mypy, who may import whom
# make figures how the code reads, counted
# make bench   planned against one submit per step and against programs by hand: cold, warm, in two groups, a backfill, on a
#              cluster, as data grows (some hours; BENCH="--case flights" less, BENCH=--help says more); then bench-plan
# make bench-stream   a stream beside a plain query: speed, pauses while it is changed, moved or killed, what is left; BENCH="..."
# make bench-archive   starts with an archive of classes and without: processor time, and what making one takes; BENCH="..."
# make bench-plan   what planning costs as dataflows grow, and how good the groups are: no Spark
# make clean   removes everything these made, .venv included
#
# Each makes what it needs: .venv from constraints.txt, Java, and for the tests PostgreSQL and HDFS.

SHELL := /bin/sh
PYTHON ?= python3
PY := .venv/bin/python
# Tests start Java more than a hundred times: each start is half as long with its classes in an archive.
CLASSES := .venv/classes.jsa
# What is there is found in a moment: no stamp to go stale.
WITH_JAVA := JAVA_HOME="$$(tools/java_home.sh)" && export JAVA_HOME &&

.PHONY: figures demo demo-stream test test-system test-versions test-cluster test-faults test-warm test-proof test-cases lint bench bench-archive bench-plan bench-stream clean
.DELETE_ON_ERROR:

demo: .venv/installed
	@$(WITH_JAVA) exec $(PY) -m demo.run $(DEMO)

demo-stream: .venv/installed
	@$(WITH_JAVA) exec $(PY) -m demo.stream.run

test: .venv/installed $(CLASSES)
	@tools/postgresql.sh
	@$(WITH_JAVA) $(PY) -m pytest -n 2 --dist loadfile -m "not slow and not cluster and not faults and not proof and not warm" $(TESTS)

test-system: .venv/installed $(CLASSES)
	@tools/postgresql.sh
	@$(WITH_JAVA) $(PY) -m pytest --timeout 1500 -m "slow and not cluster" $(TESTS)

# Of tests/spark what meets Spark's own ways: stores, leases and commits are files to it, whatever its version.
ON_EACH_SPARK := $(addprefix tests/spark/test_,driver.py engine.py python_functions.py keep.py path_tables.py other_tables.py \
	catalog_tables.py partition_filters.py reads.py repeat.py rehearse.py narrow_rows.py plan_parts.py cache_filling.py)

test-versions:
	@$(WITH_JAVA) for version in $$(grep -v '^#' tools/spark_versions.txt); do \
		PYTHON=$(PYTHON) tools/spark_venv.sh $$version && echo "Spark $$version" && \
		.venv-spark-$$version/bin/python -m pytest -q -n 2 --dist loadfile -p no:cacheprovider \
			-W ignore::ResourceWarning -W ignore::UserWarning $(ON_EACH_SPARK) $(TESTS) || exit 1; \
	done

test-cases: .venv/installed
	@$(PY) -m pytest tests/placement/high_availability/test_kip441.py tests/placement/high_availability/test_assign.py \
		tests/placement/test_twister2_cases.py tests/plan/prune/test_cases.py $(TESTS)

test-cluster: .venv/installed $(CLASSES)
	@tools/hdfs.sh >/dev/null
	@$(WITH_JAVA) $(PY) -m pytest --timeout 900 -m cluster tests/cluster tests/seeds $(TESTS)

# Searches of the model first, which take one of the two cores for minutes; each says how many states it has seen.
test-faults: .venv/installed $(CLASSES)
	@$(WITH_JAVA) $(PY) -m pytest -n 2 -rP --timeout 900 -m faults tests/switch tests/faults $(TESTS)

test-warm: .venv/installed $(CLASSES)
	@$(WITH_JAVA) $(PY) -m pytest --timeout 3600 -m warm tests/warm $(TESTS)

test-proof: .venv/installed $(CLASSES)
	@$(WITH_JAVA) $(PY) -m pytest --timeout 1500 -m proof tests/proof $(TESTS)

lint: .venv/installed
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m pytest -q tests/test_layers.py

figures: .venv/installed
	@$(PY) tools/code_figures.py $(FIGURES)

bench: .venv/installed
	@$(WITH_JAVA) $(PY) -m benchmarks $(BENCH)
	@$(MAKE) --no-print-directory bench-plan

bench-stream: .venv/installed
	@$(WITH_JAVA) $(PY) -m benchmarks.stream $(BENCH)

bench-archive: .venv/installed
	@$(WITH_JAVA) $(PY) -m benchmarks.archive $(BENCH)

bench-plan: .venv/installed
	$(PY) -m benchmarks.plan_size --json benchmarks/results/plan_size.json
	$(PY) -m benchmarks.grouping --json benchmarks/results/grouping.json
	$(PY) -m benchmarks.launches
	$(PY) -m benchmarks.regret

clean:
	rm -rf .venv .venv-spark-* .home .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	@test -x $(PY) || $(PYTHON) -m venv .venv
	@echo "Installing into .venv (the first time takes some minutes)"
	@$(PY) -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@$(PY) tools/whole_pyspark.py
	@touch $@

$(CLASSES): .venv/installed
	@$(WITH_JAVA) $(PY) -m airflow_dagsched class-archive make --output $@
