#!/usr/bin/env bash
# What can be said of packaging/docker and packaging/kubernetes without a container engine or a cluster: the manifest's
# parts fit each other, pawl reads its configuration, and the Dockerfile's health check tells a process that waits for
# PostgreSQL and Kafka from one that stands still or is gone.
#   containers_test.sh FOLDER_OF_PROGRAMS
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/waiting.sh
source "$root/tests/waiting.sh"
programs=$(realpath -- "$1")
work=$(mktemp -d "${PAWL_TEST_DIR:-${TMPDIR:-/tmp}}/pawl containers.XXXXXX")
process=''

end_process() {
    [[ -n $process ]] || return 0
    kill -s KILL "$process" 2>/dev/null || true
    { wait "$process"; } 2>/dev/null || true
    process=''
}
clean_up() {
    trap - EXIT
    end_process
    rm -rf -- "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
    printf 'containers: %s\n' "$*" >&2
    exit 1
}

# ---- Kubernetes ----------------------------------------------------------------------------------

"$root/tests/docs/blocks" "$root/docs/observe.md" probes.yaml >"$work/probes.yaml"
# Debian's python3-yaml is for Debian's Python.
/usr/bin/python3 "$root/tests/package/manifest.py" "$root/packaging/kubernetes/pawl.yaml" "$work/probes.yaml" \
    "$work/pawl.toml" || fail "the manifest is not right"
export POD_NAME=pawl-payments-0
"$programs/pawl" config show --config "$work/pawl.toml" >"$work/shown" 2>&1 ||
    { cat "$work/shown" >&2; fail "pawl does not read the manifest's configuration"; }

# ---- Docker --------------------------------------------------------------------------------------

# The command of HEALTHCHECK, whose lines end with backslashes, as Docker gives it to a shell.
health_check=$(awk '/^HEALTHCHECK/ { on = 1 } on { more = sub(/\\$/, ""); printf "%s", $0; if (!more) exit }' \
    "$root/packaging/docker/Dockerfile")
health_check=${health_check#* CMD }
[[ $health_check == *'GET /live '* ]] || fail "the Dockerfile's HEALTHCHECK does not ask /live: $health_check"
# With servers that are away.
for _ in 1 2 3 4 5; do
    port=$((20000 + RANDOM % 20000))
    command=${health_check//9464/$port}
    [[ $command != "$health_check" ]] || fail "the Dockerfile's HEALTHCHECK does not ask the port of docs/observe.md"
    "$programs/pawl" run --config "$work/pawl.toml" --set kafka.bootstrap_servers=127.0.0.1:1 \
        --set postgres.url=postgresql://payments@127.0.0.1:1/payments --set "monitoring.listen=127.0.0.1:$port" \
        >"$work/run.log" 2>&1 </dev/null &
    process=$!
    healthy() { sh -c "$command" 2>/dev/null; }
    healthy_or_ended() { healthy || ! kill -0 "$process" 2>/dev/null; }
    wait_until 60 healthy_or_ended || { cat "$work/run.log" >&2; fail "not healthy while the servers are away"; }
    # Somebody may have had the port.
    ! kill -0 "$process" 2>/dev/null || break
    end_process
done
[[ -n $process ]] || { cat "$work/run.log" >&2; fail "pawl does not run while the servers are away"; }
kill -s STOP "$process"
! healthy || fail "a process that stands still is healthy"
kill -s CONT "$process"
wait_until 60 healthy || fail "a process that goes on is not healthy"
end_process
! healthy || fail "a process that is gone is healthy"
