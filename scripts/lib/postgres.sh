# shellcheck shell=bash
# A private PostgreSQL cluster in a folder. Sourced by scripts/services.

# Prints the folder with PostgreSQL's programs: Debian's newest, or of the asked major version.
postgres_programs() { # MAJOR or ''
    local folder candidates
    if [[ $1 ]]; then
        candidates=("/usr/lib/postgresql/$1/bin" "$deps/versions/postgresql-$1/bin")
    elif [[ ${PAWL_POSTGRES:-} ]]; then
        candidates=("$PAWL_POSTGRES/bin")
    else
        mapfile -t candidates < <(compgen -G '/usr/lib/postgresql/*/bin' | sort -rV)
    fi
    for folder in "${candidates[@]}"; do
        if [[ -x $folder/initdb ]]; then
            echo "$folder"
            return
        fi
    done
}

# Unix sockets have paths of at most 107 bytes; ".s.PGSQL.65535.lock" takes 20 of them.
postgres_socket_folder() { # DIR
    local folder=$1/socket
    if ((${#folder} > 85)); then
        folder=$(mktemp -d /tmp/pawl-pg.XXXXXX)
    fi
    mkdir -p -- "$folder"
    [[ -z $service_user ]] || chown "$service_user" -- "$folder"
    chmod 755 -- "$folder"
    echo "$folder" >"$1/socket_folder"
}

postgres_initialise() { # DIR VERSION
    local dir=$1 programs
    programs=$(postgres_programs "$2")
    if [[ ! $programs ]]; then
        [[ $2 || ! ${PAWL_POSTGRES:-} ]] || fail "PAWL_POSTGRES: $PAWL_POSTGRES/bin/initdb does not exist"
        fail "no PostgreSQL ${2:-server} found. Run: scripts/setup${2:+ --postgres $2}"
    fi
    # A checkout in root's home cannot be entered by the service's user: then run a copy.
    if ! as_service_user test -x "$programs/postgres"; then
        cp -a -- "${programs%/bin}" "$dir/programs"
        programs=$dir/programs/bin
    fi
    mkdir -p -- "$dir/data"
    chmod 700 -- "$dir/data"
    [[ -z $service_user ]] || chown "$service_user" -- "$dir/data"
    as_service_user "$programs/initdb" --pgdata="$dir/data" --username=postgres --auth=trust \
        --encoding=UTF8 --locale=C.UTF-8 --no-sync >>"$dir/service.log" 2>&1 ||
        fail "initdb failed. See $dir/service.log"
    echo "$programs" >"$dir/programs_folder"
    cat >>"$dir/data/postgresql.conf" <<'CONF'
# fsync and full_page_writes stay on: the tests crash this server.
listen_addresses = '127.0.0.1'
max_connections = 200
shared_buffers = 64MB
log_line_prefix = '%m [%p] %q%u@%d '
include_if_exists = 'pawl.conf'
CONF
}

# Waits until the server takes connections; fails if it ends or after a minute.
postgres_await() { # DIR
    local end=$((SECONDS + 60)) status
    while ((SECONDS < end)); do
        read_service "$1" || return 1
        # The postmaster's own file, line 8: what pg_ctl waits for, too.
        status=$(sed -n 8p "$1/data/postmaster.pid" 2>/dev/null) || true
        if [[ $status == ready* && $(head -n 1 "$1/data/postmaster.pid") == "$pid" ]]; then
            return 0
        fi
        sleep 0.05
    done
    return 1
}

# Files of the array `files` are copied into the data folder, where only the server reads them.
postgres_start() { # DIR VERSION PORT CONF...
    local dir=$1 version=$2 asked=$3 port setting attempt programs before file
    shift 3
    read_service "$dir" && fail "$kind already runs in $dir (pid $pid). Stop it first"
    make_reachable "$dir"
    [[ -e $dir/programs_folder ]] || postgres_initialise "$dir" "$version"
    programs=$(<"$dir/programs_folder")
    for file in "${files[@]}"; do
        install -m 600 ${service_user:+-o "$service_user"} -- "$file" "$dir/data/"
    done
    # Kept over restarts, so that clients find the server again.
    [[ ! $asked && -e $dir/port ]] && asked=$(<"$dir/port")
    postgres_socket_folder "$dir"
    for attempt in 1 2 3 4 5 6 7 8 9 10; do
        port=${asked:-$(free_port)}
        {
            [[ -e $dir/data/pawl.conf ]] && grep -vE '^(port|unix_socket_directories) ' "$dir/data/pawl.conf"
            echo "port = $port"
            echo "unix_socket_directories = '$(sed "s/'/''/g" "$dir/socket_folder")'"
            for setting in "$@"; do
                echo "${setting%%=*} = '${setting#*=}'"
            done
        } >"$dir/pawl.conf.new" || true
        cat -- "$dir/pawl.conf.new" >"$dir/data/pawl.conf"
        chmod 644 "$dir/data/pawl.conf"
        before=$(log_size "$dir")
        starting=$dir
        cd -- "$dir"
        if [[ $service_user ]]; then
            launch "$dir" postgres setpriv --reuid "$service_user" \
                --regid "$(id -g "$service_user")" --init-groups -- "$programs/postgres" -D "$dir/data"
        else
            launch "$dir" postgres "$programs/postgres" -D "$dir/data"
        fi
        if postgres_await "$dir"; then
            echo "$port" >"$dir/port"
            starting=''
            postgres_url "$dir"
            return
        fi
        end_service "$dir" QUIT 10
        if [[ ! $asked ]] && port_was_taken "$dir" "$before"; then
            postgres_socket_folder "$dir"
            continue
        fi
        tail -c "+$((before + 1))" "$dir/service.log" | tail -n 15 >&2
        fail "PostgreSQL did not start in $dir. The end of its log is above"
    done
    fail "found no free port for PostgreSQL in $attempt tries. Set --port"
}

postgres_stop() { # DIR MODE
    case $2 in
        smart) end_service "$1" TERM 60 ;;
        fast) end_service "$1" INT 60 ;;
        immediate) end_service "$1" QUIT 10 ;;
        *) fail "unknown mode '$2'. Use smart, fast, or immediate" ;;
    esac
}

postgres_url() { # DIR
    [[ -r $1/port ]] || fail "no PostgreSQL was started in $1"
    echo "postgresql://postgres@127.0.0.1:$(<"$1/port")/postgres"
}
