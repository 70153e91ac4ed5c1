#!/bin/sh
# Sees to the PostgreSQL server programs that some tests start for themselves. Root on a system with apt-get
# gets them installed, without the server that Debian would set up and start; others are told what they miss.
set -eu

if command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "No PostgreSQL server programs found (Debian, Ubuntu: postgresql): the tests that need one are skipped." >&2
    exit 0
fi
mkdir -p /etc/postgresql-common/createcluster.d
echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.d/dagsched.conf
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >&2
apt-get install -y -qq postgresql >&2
