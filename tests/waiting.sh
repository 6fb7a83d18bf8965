# shellcheck shell=bash
# How the tests that are shell scripts wait: for an event, with a bound. Sourced, never run; who
# sources it has a `fail`.

# Runs a command again and again until it succeeds; fails after so many seconds.
wait_until() { # SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.1
    done
}

written_or_ended() { # TEXT FILE PID
    grep -q -- "$1" "$2" || ! kill -0 "$3" 2>/dev/null
}

# Starts a program that writes to a file, and presses Ctrl-C once a text stands there: it must end as
# programs do that are interrupted. env undoes that a shell starts what runs in its background with
# SIGINT ignored.
interrupt_at() { # TEXT FILE COMMAND...
    local text=$1 screen=$2 program code=0
    shift 2
    env --default-signal=INT "$@" >"$screen" 2>&1 &
    program=$!
    wait_until 120 written_or_ended "$text" "$screen" "$program" || true
    grep -q -- "$text" "$screen" || { cat "$screen" >&2; fail "$1 did not begin"; }
    kill -s INT "$program"
    wait "$program" || code=$?
    ((code == 130)) || { cat "$screen" >&2; fail "exit code $code after SIGINT, not 130"; }
}
