# shellcheck shell=bash
# Starts, recognises and ends the processes of one service folder. Sourced by scripts/services.
#
# A service folder holds `service.pid` (pid, start time, kind): the start time tells the process
# from a later one with the same number, so that nothing foreign is ever ended. What a service says
# goes to `service.log` there.

# The start time of a living process in clock ticks since boot; nothing for a dead or undead one.
start_time() { # PID
    local stat
    # 2>/dev/null comes first: bash reports a missing file while it redirects.
    { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
    # The command's name in parentheses may hold anything; fields are counted behind it.
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    [[ $1 != [ZX] ]] && echo "${20}"
}

# Sets pid and kind of the folder's living service; fails if there is none.
read_service() { # DIR
    local started
    pid='' kind=''
    [[ -r $1/service.pid ]] || return 1
    read -r pid started kind <"$1/service.pid"
    [[ $started && $(start_time "$pid") == "$started" ]]
}

# Runs a program as a service of its own session, with no file descriptor of the caller: who reads
# our output to its end must not wait for the service.
launch() { # DIR KIND PROGRAM ARGUMENTS...
    local dir=$1 kind=$2 fd
    shift 2
    (
        exec </dev/null >>"$dir/service.log" 2>&1
        for fd in /proc/self/fd/*; do
            fd=${fd##*/}
            ((fd > 2)) && eval "exec $fd>&-"
        done
        exec setsid "$@"
    ) 2>/dev/null &
    launched=$!
    echo "$launched $(start_time "$launched") $kind" >"$dir/service.pid"
    [[ ! ${PAWL_STARTED:-} ]] || echo "$kind $*" >>"$PAWL_STARTED"
}

# Waits until the process of the folder is gone; fails after SECONDS.
wait_gone() { # DIR SECONDS
    local end=$((SECONDS + $2))
    while read_service "$1"; do
        ((SECONDS < end)) || return 1
        sleep 0.05
    done
}

# Ends a folder's service with a signal, or at last with SIGKILL. Not running is no error.
end_service() { # DIR SIGNAL SECONDS
    if read_service "$1"; then
        kill -s "$2" "$pid" 2>/dev/null || true
        if ! wait_gone "$1" "$3"; then
            say "services: $kind (pid $pid) did not stop within $3 s; killing it"
            kill -s KILL "$pid" 2>/dev/null || true
            wait_gone "$1" 10 || fail "cannot kill pid $pid in $1. Its state: ps -o stat,wchan -p $pid"
        fi
    fi
    rm -f -- "$1/service.pid"
    if [[ -r $1/socket_folder ]]; then
        rm -rf -- "$(<"$1/socket_folder")"
    fi
}

# While a start is under way, leaving for whatever reason ends what was begun.
starting=''
abandon_start() {
    [[ $starting ]] && end_service "$starting" KILL 10
    starting=''
}
trap abandon_start EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# A port that nobody listens on just now, below the range of outgoing connections. Only a start
# that succeeds proves that it is free; on a clash the start is tried with another one.
free_port() {
    local port
    while :; do
        port=$((12000 + (RANDOM * 32768 + RANDOM) % 20000))
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

# Did the service's last words, from byte OFFSET of its log, say that its port is taken?
port_was_taken() { # DIR OFFSET
    tail -c "+$(($2 + 1))" "$1/service.log" | grep -q 'Address already in use'
}

log_size() { # DIR
    if [[ -e $1/service.log ]]; then stat -c %s "$1/service.log"; else echo 0; fi
}

# PostgreSQL and PgBouncer refuse to run as root: then they run as another user.
service_user=''
if ((EUID == 0)); then
    service_user=$(getent passwd postgres nobody | head -n 1 | cut -d: -f1)
fi

as_service_user() {
    if [[ $service_user ]]; then
        setpriv --reuid "$service_user" --regid "$(id -g "$service_user")" --init-groups -- "$@"
    else
        "$@"
    fi
}

# Lets the service's user reach a folder. Only temporary folders are opened for that (search
# permission, no reading); a home is not.
make_reachable() { # DIR
    [[ $service_user ]] || return 0
    local folder
    until as_service_user test -x "$1"; do
        folder=$(first_closed "$1")
        case $folder in
            /tmp/* | /var/tmp/* | "${TMPDIR:-/tmp}"/*) chmod o+x -- "$folder" ;;
            *) fail "the user of the service, $service_user, cannot enter $folder. Use a folder in /tmp, or run: chmod o+x '$folder'" ;;
        esac
    done
}

# The outermost folder on the way to DIR that the service's user cannot enter.
first_closed() { # DIR
    local folder='' part
    local IFS=/
    for part in ${1#/}; do
        folder+=/$part
        as_service_user test -x "$folder" || break
    done
    echo "$folder"
}
