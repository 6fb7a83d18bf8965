# shellcheck shell=bash
# PgBouncer in front of a private PostgreSQL. Sourced by scripts/services.

pgbouncer_program() {
    if [[ ${PAWL_PGBOUNCER:-} ]]; then
        [[ -x $PAWL_PGBOUNCER ]] || fail "PAWL_PGBOUNCER: the program $PAWL_PGBOUNCER does not exist"
        echo "$PAWL_PGBOUNCER"
        return
    fi
    command -v pgbouncer || { [[ -x /usr/sbin/pgbouncer ]] && echo /usr/sbin/pgbouncer; } ||
        fail "no pgbouncer found. Run: scripts/setup --dev"
}

pgbouncer_write_conf() { # DIR PORT MODE POSTGRES_PORT CONF...
    local setting
    {
        echo "[databases]"
        echo "* = host=127.0.0.1 port=$4"
        echo "[pgbouncer]"
        echo "listen_addr = 127.0.0.1"
        echo "listen_port = $2"
        echo "unix_socket_dir ="
        # Relative names: PgBouncer's configuration has no way to quote a space.
        echo "auth_type = trust"
        echo "auth_file = users.txt"
        echo "pool_mode = $3"
        echo "max_client_conn = 500"
        echo "admin_users = postgres"
        for setting in "${@:5}"; do
            echo "${setting%%=*} = ${setting#*=}"
        done
    } >"$1/pgbouncer.ini"
}

pgbouncer_await() { # DIR PORT
    local end=$((SECONDS + 15))
    while ((SECONDS < end)); do
        read_service "$1" || return 1
        psql -qAtX "host=127.0.0.1 port=$2 user=postgres dbname=pgbouncer connect_timeout=2" \
            -c 'SHOW VERSION' >/dev/null 2>&1 && return
        sleep 0.05
    done
    return 1
}

pgbouncer_start() { # DIR MODE POSTGRES_DIR PORT CONF...
    local dir=$1 mode=$2 server=$3 asked=$4 port attempt before program launcher=()
    shift 4
    [[ $mode == session || $mode == transaction || $mode == statement ]] ||
        fail "pgbouncer start requires --mode session, transaction, or statement"
    [[ -r $server/port ]] || fail "pgbouncer start requires --postgres DIR, the folder of a running PostgreSQL"
    read_service "$dir" && fail "$kind already runs in $dir (pid $pid). Stop it first"
    make_reachable "$dir"
    program=$(pgbouncer_program)
    [[ $service_user ]] && launcher=(setpriv --reuid "$service_user"
        --regid "$(id -g "$service_user")" --init-groups --)
    [[ ! $asked && -e $dir/port ]] && asked=$(<"$dir/port")
    # Roles that exist now may connect; PgBouncer asks for a list even where it trusts.
    psql -qAtX "$(postgres_url "$server")" -c "SELECT format('\"%s\" \"\"', rolname) FROM pg_roles" \
        >"$dir/users.txt" || fail "could not read the roles of the PostgreSQL in $server. Is it running?"
    chmod 644 "$dir/users.txt"
    for attempt in 1 2 3 4 5 6 7 8 9 10; do
        port=${asked:-$(free_port)}
        pgbouncer_write_conf "$dir" "$port" "$mode" "$(<"$server/port")" "$@"
        chmod 644 "$dir/pgbouncer.ini"
        before=$(log_size "$dir")
        starting=$dir
        cd -- "$dir"
        launch "$dir" pgbouncer "${launcher[@]}" "$program" pgbouncer.ini
        if pgbouncer_await "$dir" "$port"; then
            echo "$port" >"$dir/port"
            starting=''
            pgbouncer_url "$dir"
            return
        fi
        end_service "$dir" KILL 10
        [[ ! $asked ]] && port_was_taken "$dir" "$before" && continue
        tail -c "+$((before + 1))" "$dir/service.log" | tail -n 15 >&2
        fail "PgBouncer did not start in $dir. The end of its log is above"
    done
    fail "found no free port for PgBouncer in $attempt tries. Set --port"
}

pgbouncer_url() { # DIR
    [[ -r $1/port ]] || fail "no PgBouncer was started in $1"
    echo "postgresql://postgres@127.0.0.1:$(<"$1/port")/postgres"
}
