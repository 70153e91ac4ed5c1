#!/bin/sh
# Prints the home of a Java 17 or 21, which Spark 4 needs: JAVA_HOME's, the path's, or one under /usr/lib/jvm.
# Where there is none, root on a system with apt-get gets one installed; others get one line saying what to install.
set -eu

serves() {
    [ -x "$1/bin/java" ] && "$1/bin/java" -version 2>&1 | grep -Eq 'version "(17|21)[."]'
}

find_java() {
    on_path=$(command -v java || true)
    for home in "${JAVA_HOME:-}" "${on_path:+$(dirname "$(dirname "$(readlink -f "$on_path")")")}" /usr/lib/jvm/*; do
        if [ -n "$home" ] && serves "$home"; then
            echo "$home"
            return 0
        fi
    done
    return 1
}

install_java() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2
    apt-get install -y -qq openjdk-17-jre-headless >&2 || apt-get install -y -qq openjdk-21-jre-headless >&2
}

find_java || { install_java && find_java; } || {
    echo "No Java 17 or 21 found: install one (Debian, Ubuntu: openjdk-17-jre-headless; Fedora: java-21-openjdk-headless; macOS: openjdk@21) or set JAVA_HOME." >&2
    exit 1
}
