# shellcheck shell=bash
# Which room of framework/ may include which (docs/design.md, "Rooms"). Sourced by scripts/test.

# Each room may include itself, the public headers (pawl/) and the rooms that stand here.
declare -A room_may_include=(
    [include]=''
    [message]=''
    [postgres]=''
    [kafka]=''
    [config]='message postgres'
    [ledger]='message postgres'
    [handlers]='message postgres'
    [engine]='config handlers kafka ledger message postgres'
    [ops]='config handlers postgres'
    [cli]='config engine handlers kafka ledger message ops postgres'
    [testing]=''
)

check_rooms() {
    local room file line header found=0
    for room in "$root"/framework/*/; do
        room=$(basename -- "$room")
        [[ -v room_may_include[$room] ]] ||
            fail "framework/$room: not a room that scripts/lib/rooms.sh knows; say there what it may include"
        while IFS=: read -r file line header; do
            header=${header#*\"}
            header=${header%%/*}
            case " $room pawl ${room_may_include[$room]} " in
                *" $header "*) continue ;;
            esac
            echo "${file#"$root/"}:$line: $room must not include $header" >&2
            found=1
        done < <(grep -rnE '^#include "[a-z_]+/' --include='*.[ch]pp' "$root/framework/$room")
    done
    # include/pawl/testing speaks of librdkafka's numbers to users' tests.
    if grep -rnE '\<(RD_KAFKA_|rd_kafka_)|rdkafka\.h' --include='*.[ch]pp' "$root/framework" \
        --exclude-dir=kafka --exclude-dir=testing >&2; then
        fail "librdkafka is named outside of framework/kafka; let kafka/error.hpp or its neighbours say what is meant"
    fi
    ((found == 0)) ||
        fail "rooms include what they must not; move the code, or change docs/design.md and scripts/lib/rooms.sh"
}
