#!/usr/bin/env bash
# scripts/fresh without a system: what it refuses, and what it leaves behind when it fails or is ended. The system itself
# is only made by scripts/fresh.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/waiting.sh
source "$root/tests/waiting.sh"
work=$(mktemp -d "${PAWL_TEST_DIR:-${TMPDIR:-/tmp}}/pawl-fresh-test.XXXXXX")
trap 'rm -rf -- "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
    printf 'fresh: %s\n' "$*" >&2
    exit 1
}
expect() { # CODE TEXT COMMAND...
    local code=0 expected=$1 text=$2
    shift 2
    "$@" >"$work/said" 2>&1 </dev/null || code=$?
    ((code == expected)) || { cat -- "$work/said" >&2; fail "exit code $code instead of $expected of: $*"; }
    grep -qF -- "$text" "$work/said" || { cat -- "$work/said" >&2; fail "does not say '$text': $*"; }
}

# ---- what it is asked ----------------------------------------------------------------------------

expect 0 'scripts/fresh demo|test' "$root/scripts/fresh" --help
expect 1 "needs 'demo' or 'test', not ''" "$root/scripts/fresh"
expect 1 "needs 'demo' or 'test', not 'bench'" "$root/scripts/fresh" bench
if ((EUID != 0)); then
    expect 1 'needs root' "$root/scripts/fresh" demo
    echo "fresh: passed; the parts that need root were skipped"
    exit
fi
# A copy, which another user may read.
mkdir -p -- "$work/copy"
cp -r -- "$root/scripts" "$work/copy"
chmod -R a+rX "$work"
expect 1 'needs root' setpriv --reuid 65534 --regid 65534 --clear-groups "$work/copy/scripts/fresh" demo

# ---- where a release has its sources -------------------------------------------------------------

sources_of() { # SUITE: as a machine with Debian 12 has them
    (
        fail() { echo "$*"; exit 1; }
        # shellcheck source=scripts/lib/fresh-system.sh
        source "$root/scripts/lib/fresh-system.sh"
        # shellcheck disable=SC2034  # fresh_sources reads it
        system_codename=bookworm
        archive_keyring() { echo /keys; }
        apt-get() {
            printf '%s\n' 'http://a.example/debian bookworm main Debian' 'http://a.example/debian bookworm contrib Debian' \
                'http://a.example/debian bookworm-updates main Debian' 'http://s.example/sec bookworm-security main Debian' \
                'http://a.example/debian bookworm-backports main Debian' 'http://other.example/apt bookworm main Other'
        }
        fresh_sources "$1"
    )
}
for suite in bookworm trixie; do
    expected="deb [signed-by=/keys] http://a.example/debian $suite main
deb [signed-by=/keys] http://a.example/debian $suite-updates main
deb [signed-by=/keys] http://s.example/sec $suite-security main"
    [[ $(sources_of "$suite") == "$expected" ]] || fail "the sources of $suite are: $(sources_of "$suite")"
done

# ---- what it needs -------------------------------------------------------------------------------

# Programs of its own before those of the machine: apt that knows one mirror, and a debootstrap.
mkdir -- "$work/bin" "$work/temporary"
program() { # NAME; its text comes on stdin
    cat >"$work/bin/$1"
    chmod 755 "$work/bin/$1"
}
program apt-get <<'SH'
#!/bin/sh
[ -e "$0.none" ] || for release in bookworm trixie; do
    case "$*" in
        *COMPONENT*) echo "http://mirror.example/debian $release main Debian" ;;
        *) echo "http://mirror.example/debian $release Debian" ;;
    esac
done
SH
fresh() { env PATH="$work/bin:$PATH" TMPDIR="$work/temporary" "$root/scripts/fresh" "$@"; }
left() { find "$work/temporary" -mindepth 1 -maxdepth 1; }

if [[ $(. /etc/os-release && echo "$ID") != debian ]]; then
    echo "fresh: passed; the rest is for Debian"
    exit
fi
if git -C "$root" rev-parse HEAD >/dev/null 2>&1 && unshare --mount --pid --fork true 2>/dev/null; then
    touch "$work/bin/apt-get.none"
    program debootstrap <<<'#!/bin/sh'
    expect 1 'names no Debian mirror' fresh demo
    rm -- "$work/bin/apt-get.none"

    # ---- a failure leaves nothing ----------------------------------------------------------------

    program debootstrap <<'SH'
#!/bin/sh
echo "the archive is gone: $*" >&2
mkdir -p "$4" && touch "$4/half a system"
exit 3
SH
    expect 1 'the archive is gone: --variant=minbase' fresh test -R 'a|b'
    [[ ! $(left) ]] || fail "a failure left: $(left)"

    # ---- neither does an end ---------------------------------------------------------------------

    # With a mount and a process, which would outlive it.
    program debootstrap <<'SH'
#!/bin/sh
mkdir -p "$4/proc" && mount -t tmpfs tmpfs "$4/proc" && touch "$4/proc/mounted"
echo "$PWD" >"$0.begun"
exec sleep 1234567
SH
    for signal in TERM INT; do
        rm -f -- "$work/bin/debootstrap.begun"
        env --default-signal=INT PATH="$work/bin:$PATH" TMPDIR="$work/temporary" "$root/scripts/fresh" demo \
            >"$work/said" 2>&1 </dev/null &
        pid=$!
        begun() { [[ -s $work/bin/debootstrap.begun ]] || ! kill -0 "$pid" 2>/dev/null; }
        wait_until 60 begun || fail "debootstrap was not started"
        [[ -s $work/bin/debootstrap.begun ]] || { cat -- "$work/said" >&2; fail "it ended before debootstrap"; }
        kill -s "$signal" "$pid"
        code=0
        wait "$pid" || code=$?
        [[ $signal == TERM && $code == 143 || $signal == INT && $code == 130 ]] || fail "exit code $code after SIG$signal"
        [[ ! $(left) ]] || fail "SIG$signal left: $(left)"
        ! grep -F -- "$work" /proc/mounts >&2 || fail "SIG$signal left a mount"
        ! pgrep --full --list-full 'sleep 1234567' >&2 || fail "SIG$signal left a process"
    done
else
    echo "fresh: no namespaces or no repository here, so the parts that need them were skipped"
fi
echo "fresh: passed"
