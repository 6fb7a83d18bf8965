# shellcheck shell=bash
# Which module of framework/ may include which (docs/architecture.md, "Modules"). Sourced by scripts/test.

# Each module may include itself, the public headers (pawl/), and the modules listed here. A module with
# a store is two: its tables are below the engine, and the code that uses them is above.
declare -A room_may_include=(
    [include]=''
    [text]=''
    [message]=''
    [process]=''
    [postgres]='process text'
    [redis]=''
    [kafka]='message process'
    [testing]='kafka' # headers only: pawl::testing is a library of its own
    [ledger]='message postgres'
    [dead_letters/store]='ledger message postgres text'
    [retention/store]='ledger message postgres'
    [audit/store]='ledger message postgres'
    [outbox/store]='ledger message postgres'
    [leases/store]='ledger message postgres redis'
    [handlers]='message postgres text'
    [config]='handlers message postgres redis text'
    [engine]='config dead_letters/store handlers kafka leases/store ledger message postgres redis
              text'
    [ops]='config handlers kafka message postgres process redis text'
    [console]='config handlers kafka ledger message postgres'
    [dead_letters]='config console dead_letters/store engine handlers kafka ledger message postgres
                    retention/store text'
    [retention]='config console engine handlers kafka ledger message postgres retention/store'
    [audit]='audit/store config console engine handlers kafka ledger message postgres'
    [leases]='config console leases/store ledger message postgres'
    [outbox]='config console engine kafka ledger message ops outbox/store postgres'
    [consumer]='config dead_letters engine kafka outbox retention'
    [dashboard]='config console dead_letters dead_letters/store engine handlers kafka leases/store ledger message
                 ops outbox/store postgres'
    [cli]='audit audit/store config console dashboard dead_letters dead_letters/store engine handlers kafka leases leases/store ledger
           message ops outbox outbox/store postgres process redis retention retention/store text'
    [documents]='config ops'
)

# The module of a path below framework/: "dead_letters/store" of dead_letters/store/view.hpp.
room_of() {
    local folder=${1%/*}
    while [[ ! -v room_may_include[$folder] && $folder == */* ]]; do folder=${folder%/*}; done
    echo "$folder"
}

check_rooms() {
    local file line header room target allowed found=0
    for file in "$root"/framework/*/; do
        file=$(basename -- "$file")
        [[ -v room_may_include[$file] ]] ||
            fail "framework/$file: scripts/lib/rooms.sh does not list this module. Add the modules that it may include"
    done
    while IFS=: read -r file line header; do
        room=$(room_of "${file#"$root/framework/"}")
        header=${header#*\"}
        target=$(room_of "${header%\"*}")
        allowed=" $room pawl ${room_may_include[$room]//$'\n'/ } "
        [[ $target != pawl* && $allowed != *" $target "* ]] || continue
        echo "${file#"$root/"}:$line: $room must not include $target" >&2
        found=1
    done < <(grep -rnE '^#include "[a-z_]+/' --include='*.[ch]pp' "$root/framework")
    # include/pawl/testing has librdkafka's numbers for users' tests.
    if grep -rnE '\<(RD_KAFKA_|rd_kafka_)|rdkafka\.h' --include='*.[ch]pp' "$root/framework" \
        --exclude-dir=kafka --exclude-dir=testing >&2; then
        fail "librdkafka is named outside of framework/kafka. Add what you need to framework/kafka instead"
    fi
    if grep -rnE '\<redis(Context|Reply|Command)|hiredis/' --include='*.[ch]pp' "$root/framework" \
        --exclude-dir=redis >&2; then
        fail "hiredis is named outside of framework/redis. Add what you need to framework/redis instead"
    fi
    ((found == 0)) ||
        fail "the modules above include others that they must not. Move the code, or change docs/architecture.md and scripts/lib/rooms.sh"
}
