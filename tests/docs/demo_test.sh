#!/usr/bin/env bash
# The demo with a few payments: its results match, it can run again, and it leaves nothing behind,
# also if it is interrupted.
#   demo_test.sh FOLDER_OF_PROGRAMS
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/waiting.sh
source "$root/tests/waiting.sh"
programs=$1
TMPDIR=$(mktemp -d "${PAWL_TEST_DIR:-${TMPDIR:-/tmp}}/pawl-demo-test.XXXXXX")
export TMPDIR
chmod 711 "$TMPDIR"
trap '"$root/scripts/services" stop-all "$TMPDIR" || true; rm -rf -- "$TMPDIR"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
    printf 'demo: %s\n' "$*" >&2
    exit 1
}
require_clean() {
    local left
    left=$(find "$TMPDIR" -mindepth 1 -maxdepth 1 -name 'pawl-demo.*')
    [[ ! $left ]] || fail "$1 left $left behind"
}

"$root/scripts/demo" --bin "$programs" --payments 5000
require_clean "the demo"
"$root/scripts/demo" --bin "$programs" --payments 2000 --embedded-broker
require_clean "the demo with the embedded broker"

# Ctrl-C while the consumers work.
interrupt_at 'Two consumers start' "$TMPDIR/screen" \
    "$root/scripts/demo" --bin "$programs" --embedded-broker
require_clean "the interrupted demo"
