#!/bin/sh
# Prints the folder with the jars of a whole HDFS, servers and their web pages included; fetches them where they are
# not there yet: the source package of PySpark 2.4.8 ships those of Hadoop 2.7, Debian has the Jersey 1 they lack.
# Nothing is installed: packages are unpacked below .home/hdfs. What is there half is made anew.
set -eu
cd "$(dirname "$0")/.."

HOME_OF_HDFS="$PWD/.home/hdfs"
JARS="$HOME_OF_HDFS/jars"
JERSEY="libjersey1-core-java libjersey1-server-java libjersey1-servlet-java libjersey1-json-java libjsr311-api-java"

hadoop() {
    # Its old setup.py needs an old setuptools, and no isolation, to tell its name.
    "${PYTHON:-python3}" -m venv new/venv
    new/venv/bin/python -m pip install -q --disable-pip-version-check 'setuptools<60' wheel
    new/venv/bin/python -m pip download -q --disable-pip-version-check --no-deps --no-build-isolation \
        --no-binary :all: -d new pyspark==2.4.8
    tar -xzf new/pyspark-2.4.8.tar.gz -C new --wildcards '*/deps/jars/*.jar'
    mv new/pyspark-2.4.8/deps/jars new/jars
    # Not Spark's own, nor the Jersey 2 beside which Jersey 1 does not start.
    rm -f new/jars/spark-*.jar new/jars/scala-*.jar new/jars/hive-*.jar new/jars/jersey-*.jar new/jars/javax.ws.rs-*.jar
}

jersey() {
    (cd new && apt-get download -qq $JERSEY) || {
        [ "$(id -u)" = 0 ] && apt-get update -qq && (cd new && apt-get download -qq $JERSEY)
    }
    for package in new/*.deb; do
        dpkg -x "$package" new/debian
    done
    for name in jersey1-core jersey1-server jersey1-servlet jersey1-json jsr311-api; do
        cp -L "new/debian/usr/share/java/$name.jar" new/jars/
    done
}

if [ ! -d "$JARS" ]; then
    command -v apt-get >/dev/null || { echo "Needed: apt-get and dpkg, for the packages $JERSEY." >&2; exit 1; }
    mkdir -p "$HOME_OF_HDFS"
    cd "$HOME_OF_HDFS"
    rm -rf new
    mkdir new
    echo "Fetching the jars of HDFS into $HOME_OF_HDFS (200 MB, the first time only)" >&2
    { hadoop && jersey; } >&2
    mv new/jars jars
    rm -rf new
fi
echo "$JARS"
