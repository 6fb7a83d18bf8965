# shellcheck shell=bash
# What every script here shares: where things are, how to speak, how to fail.
# Sourced, never run. Sets `root` (the repository) and `deps` (what scripts/setup built).

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
deps=${PAWL_DEPS_DIR:-$root/.deps}

# What a person reads goes to stderr: stdout belongs to results (a URL, a port).
say() { printf '%s\n' "$*" >&2; }
fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Java 17 is what Kafka 4 asks for at least.
java_major() {
    local line
    line=$(java -version 2>&1) || { echo 0; return; }
    line=${line#*\"}
    line=${line%%[.\"-]*}
    case $line in '' | *[!0-9]*) echo 0 ;; *) echo "$line" ;; esac
}

# "gnu-12", "clang-16": libraries in .deps are kept apart by what compiled them.
# cmake/Dependencies.cmake makes the same text from CMAKE_CXX_COMPILER_ID and _VERSION.
compiler_key() {
    local compiler=${CXX:-c++} id=gnu
    case $("$compiler" --version 2>/dev/null) in
        *clang*) id=clang ;;
        '') fail "no C++ compiler answers as '$compiler'; install g++ or set CXX" ;;
    esac
    local version
    version=$("$compiler" -dumpversion)
    echo "$id-${version%%.*}"
}
