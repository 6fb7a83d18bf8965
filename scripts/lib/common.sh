# shellcheck shell=bash
# Shared by all scripts: paths, output, and errors. Sourced, never run. Sets `root` (the repository) and `deps` (what scripts/setup built).

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
deps=${PAWL_DEPS_DIR:-$root/.deps}

# Texts for people go to stderr, because stdout contains results (a URL, a port).
say() { printf '%s\n' "$*" >&2; }
fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Kafka 4 requires Java 17 or later.
java_major() {
    local line
    line=$(java -version 2>&1) || { echo 0; return; }
    line=${line#*\"}
    line=${line%%[.\"-]*}
    case $line in '' | *[!0-9]*) echo 0 ;; *) echo "$line" ;; esac
}

# "gnu-12", "clang-16": libraries in .deps are separated by compiler.
# cmake/Dependencies.cmake builds the same text from CMAKE_CXX_COMPILER_ID and _VERSION.
compiler_key() {
    local compiler=${CXX:-c++} id=gnu
    case $("$compiler" --version 2>/dev/null) in
        *clang*) id=clang ;;
        '') fail "cannot run the C++ compiler '$compiler'. Install g++ or set CXX" ;;
    esac
    local version
    version=$("$compiler" -dumpversion)
    echo "$id-${version%%.*}"
}
