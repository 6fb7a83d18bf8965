# shellcheck shell=bash
# A private Redis or Sentinel. Sourced by scripts/services.

redis_program() { # MODE
    command -v "redis-$1" || fail "no redis-$1 found. Run: scripts/setup --dev"
}

# With a certificate among the settings it speaks TLS only.
redis_write_conf() { # DIR PORT CONF...
    local setting port=port
    for setting in "${@:3}"; do
        [[ $setting == tls-cert-file=* ]] && port=tls-port
    done
    {
        echo "bind 127.0.0.1"
        [[ $port == port ]] || echo "port 0"
        echo "$port $2"
        echo "dir \"$1\""
        for setting in "${@:3}"; do
            echo "${setting%%=*} ${setting#*=}"
        done
    } >"$1/redis.conf"
}

# Until it says that it answers: with a password or TLS a client of ours could not ask.
redis_await() { # DIR OFFSET
    local end=$((SECONDS + 15))
    while ((SECONDS < end)); do
        read_service "$1" || return 1
        tail -c "+$(($2 + 1))" "$1/service.log" |
            grep -qE 'Ready to accept connections|Sentinel ID is' && return
        sleep 0.05
    done
    return 1
}

redis_start() { # DIR MODE PORT CONF...
    local dir=$1 mode=$2 asked=$3 port attempt before program
    shift 3
    [[ $mode == server || $mode == sentinel ]] ||
        fail "redis start requires --mode server or --mode sentinel"
    read_service "$dir" && fail "$kind already runs in $dir (pid $pid). Stop it first"
    program=$(redis_program "$mode")
    for attempt in 1 2 3 4 5 6 7 8 9 10; do
        port=${asked:-$(free_port)}
        redis_write_conf "$dir" "$port" "$@"
        before=$(log_size "$dir")
        starting=$dir
        launch "$dir" "redis-$mode" "$program" "$dir/redis.conf"
        if redis_await "$dir" "$before"; then
            echo "$port" >"$dir/port"
            starting=''
            echo "127.0.0.1:$port"
            return
        fi
        end_service "$dir" KILL 10
        [[ ! $asked ]] && port_was_taken "$dir" "$before" && continue
        tail -c "+$((before + 1))" "$dir/service.log" | tail -n 15 >&2
        fail "Redis did not start in $dir. The end of its log is above"
    done
    fail "found no free port for Redis in $attempt tries. Set --port"
}
