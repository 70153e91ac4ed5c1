#!/bin/sh
# tools/spark_venv.sh VERSION   makes .venv-spark-VERSION: that PySpark and what tests/spark needs, without Airflow.
set -eu
venv=".venv-spark-$1"
[ -e "$venv/installed" ] && [ ! constraints.txt -nt "$venv/installed" ] && exit 0
[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
echo "Installing into $venv"
grep -vE '^(pyspark|pyspark-client|py4j)==' constraints.txt >"$venv/constraints.txt"
"$venv/bin/python" -m pip install -qq --disable-pip-version-check -c "$venv/constraints.txt" "pyspark==$1" \
    cloudpickle fsspec httpx hypothesis msgspec networkx pandas pendulum psutil pyarrow pytest pytest-timeout pytest-xdist pyyaml sqlglot
touch "$venv/installed"
