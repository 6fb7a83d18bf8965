#!/usr/bin/env bash
# Installs the Debian packages into a fresh system, runs the commands of the README's installation and of the tutorial, runs a
# service from the packages, upgrades it under load, boots the system, runs the service under its systemd, and removes and
# purges the packages. As root; needs debootstrap, systemd-nspawn, and the network.
# Not part of ctest, because it takes minutes, and a quarter of an hour for another release than this machine's.
#   tests/package/debian_test.sh [bookworm|trixie]
# For this machine's release it takes the packages in build/packages, or makes them; for another one it builds them in a
# fresh system of that release first.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=scripts/lib/common.sh
source "$root/scripts/lib/common.sh"
# shellcheck source=scripts/lib/system.sh
source "$root/scripts/lib/system.sh"
# shellcheck source=scripts/lib/fresh-system.sh
source "$root/scripts/lib/fresh-system.sh"
# shellcheck source=tests/waiting.sh
source "$root/tests/waiting.sh"
read_system /etc/os-release
suite=${1:-$system_codename}

fresh_system_needs readelf systemd-nspawn

work=$(mktemp -d "${TMPDIR:-/tmp}/pawl-debian.XXXXXX")
chmod 755 "$work"
pid=
machine=
clean_up() {
    [[ ! $machine ]] || kill -s KILL "$machine" 2>/dev/null || true
    [[ ! $pid ]] || kill -s KILL "$pid" 2>/dev/null || true
    "$root/scripts/services" stop-all "$work/services" 2>/dev/null || true
    local system
    for system in "$work"/system "$work"/build; do
        mountpoint -q "$system/proc" 2>/dev/null && umount -l "$system/proc"
    done
    rm -rf -- "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

quietly() { # COMMAND...: what it says is shown only when it fails
    "$@" >"$work/log" 2>&1 || { tail -n 60 "$work/log" >&2; fail "failed: $*"; }
}
require() { # WHAT EXPECTED ACTUAL
    [[ $2 == "$3" ]] || fail "$1: expected $2, found $3"
}
new_system() { # FOLDER PACKAGES: a system that has nothing but these
    say "a fresh $suite"
    quietly make_fresh_system "$suite" "$1" "$2"
    mountpoint -q "$1/proc" || mount -t proc proc "$1/proc"
}
# Where it stands inside.
package_file() { # now|next NAME
    local files=("$work/$1/$2"_*.deb)
    echo "/srv/$1/${files[0]##*/}"
}
needed_libraries() { # FILE
    LC_ALL=C readelf --dynamic "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'
}
soname() { # FILE
    LC_ALL=C readelf --dynamic "$1" | sed -n 's/.*(SONAME).*\[\(.*\)\]$/\1/p'
}
sections() { # FILE
    LC_ALL=C readelf --section-headers --wide "$1" 2>/dev/null
}
build_id() { # FILE
    LC_ALL=C readelf --notes "$1" 2>/dev/null | sed -n 's/.*Build ID: //p'
}
# Stripped, and its symbols are in that package under its build id.
check_symbols() { # FILE FOLDER_OF_THE_DBGSYM_PACKAGE
    local id symbols
    [[ ! $(sections "$1") =~ \.(symtab|debug_info) ]] || fail "$1 is not stripped"
    id=$(build_id "$1")
    [[ $id ]] || fail "$1 has no build id"
    symbols=$2/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
    [[ -f $symbols ]] || fail "there is no ${symbols#"$work/"}: $(find "$2" -name '*.debug')"
    require "the build id of ${symbols#"$work/"}" "$id" "$(build_id "$symbols")"
    [[ $(sections "$symbols") == *.debug_info* ]] || fail "$symbols has no debug symbols"
}
read_network_environment
inside() {
    chroot "$work/system" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C \
        "${network_environment[@]}" "$@"
}

# ---- the packages, and those of a version behind -------------------------------------------------

mkdir "$work/now" "$work/next"
newer=99.0.0
if [[ $suite == "$system_codename" ]]; then
    quietly "$root/scripts/package" --version "$newer"
    cp -- "$root"/build/packages/* "$work/next"
    quietly "$root/scripts/package"
    cp -- "$root"/build/packages/* "$work/now"
else
    new_system "$work/build" git
    git -C "$root" archive --prefix=pawl/ HEAD | tar -x -C "$work/build/srv"
    for version in "$newer" ''; do
        say "building for $suite"
        quietly chroot "$work/build" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C "${network_environment[@]}" \
            /srv/pawl/scripts/package ${version:+--version "$version"}
        target=$work/${version:+next}
        [[ $version ]] || target=$work/now
        cp -- "$work"/build/srv/pawl/build/packages/* "$target"
    done
fi
ls -- "$work/now" >&2

# ---- what they hold ------------------------------------------------------------------------------

mkdir "$work/files"
for name in pawl pawl-dbgsym libpawl-dev libpawl-dev-dbgsym; do
    # Debug symbols' may be named .ddeb.
    files=("$work/now/${name}_"*.*deb)
    [[ ${#files[@]} == 1 && -f ${files[0]} ]] || fail "no package $name, or more than one: ${files[*]}"
    quietly dpkg-deb --extract "${files[0]}" "$work/files/$name"
    require "the package in ${files[0]##*/}" "$name" "$(dpkg-deb --field "${files[0]}" Package)"
done
for file in man/man1/pawl.1 man/man1/pawl-migrate.1 doc/pawl/docs/failures.md pawl/conf/reference.toml; do
    compgen -G "$work/files/pawl/usr/share/$file*" >/dev/null || fail "the package pawl has no $file"
done
check_symbols "$work/files/pawl/usr/bin/pawl" "$work/files/pawl-dbgsym"
# libpawl.so, libpawl.so.0.1 and libpawl.so.0.1.0: what is linked to, what programs then name, and the file.
link=$(find "$work/files/libpawl-dev" -name libpawl.so)
[[ -L $link ]] || fail "libpawl-dev has no link libpawl.so: $(find "$work/files/libpawl-dev" -name 'libpawl*')"
library=$(realpath -e -- "$link") || fail "libpawl.so leads to no file"
name=$(soname "$library")
[[ $name =~ ^libpawl\.so\.[0-9]+\.[0-9]+$ ]] || fail "the SONAME of ${library##*/} is '$name'"
[[ -L ${link%/*}/$name ]] || fail "libpawl-dev has no link $name"
require "where $name leads" "$library" "$(realpath -- "${link%/*}/$name")"
check_symbols "$library" "$work/files/libpawl-dev-dbgsym"

# ---- installed -----------------------------------------------------------------------------------

new_system "$work/system" systemd,systemd-sysv,dbus
cp -r -- "$work/now" "$work/next" "$work/system/srv/"
quietly inside apt-get install --yes --no-install-recommends "$(package_file now pawl)"
for file in /usr/bin/pawl /usr/bin/pawl-migrate /usr/share/pawl/migrations/0001_consumers.sql \
    /usr/share/bash-completion/completions/pawl /usr/share/zsh/vendor-completions/_pawl; do
    inside test -e "$file" || fail "$file is not installed"
done
compgen -G "$work/system/usr/lib/systemd/system/pawl@.service" >/dev/null || fail "the unit is not installed"
# --man=no: there is no man here.
problems=$(inside systemd-analyze verify --man=no pawl@payments.service 2>&1 || true)
require "what systemd says of the unit" '' "$problems"
inside systemd-analyze security --offline=true --threshold=20 /usr/lib/systemd/system/pawl@.service >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; fail "the unit is exposed to more than 2.0"; }
say "exposure of the unit:$(sed -n 's/.*Overall exposure level for [^:]*://p' "$work/log")"
missing=$(inside ldd /usr/bin/pawl | grep 'not found' || true)
require "libraries that are not there" '' "$missing"
# Each library that the program names is of a package that this one names; those of libraries are of what follows from it.
depends=$(inside dpkg-query -W -f='${Depends}' pawl)
direct=$(tr '|' ',' <<<"$depends" | tr ',' '\n' | awk '{ sub(/:.*/, "", $1); print $1 }')
follows=$(inside apt-cache depends --recurse --important pawl |
    awk '/^[^ |]/ { gsub(/[<>]|:.*/, "", $1); print $1 }')
needed=$(needed_libraries "$work/system/usr/bin/pawl")
[[ $needed == *libc.so* ]] || fail "readelf says of no library that pawl needs it"
while read -r name library; do
    package=$(inside dpkg -S "$(inside readlink -f "$library")" "$library" 2>/dev/null | head -n 1 | cut -d : -f 1 || true)
    [[ $package ]] || fail "$library is of no package"
    # A package may be named as what it provides: libspdlog1.10-fmt9.
    names=$package$(inside dpkg-query -W -f='${Provides}' "$package" | tr ',' '\n' | awk '{ printf "\n%s", $1 }')
    among=$follows
    ! grep -qxF -- "$name" <<<"$needed" || among=$direct
    grep -qxF -- "$names" <<<"$among" || fail "$library is of $package, and pawl does not depend on it: $depends"
done < <(inside ldd /usr/bin/pawl | awk '$3 ~ /^\// { print $1, $3 }')
say "depends on: $depends"
require "the version" "pawl (pawl $(sed -n 's/^project(pawl VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt"))" \
    "$(inside pawl version | head -n 1)"
require "the user" pawl "$(inside getent passwd pawl | cut -d: -f1)"
require "the folder of configurations" 'root pawl 750' "$(inside stat -c '%U %G %a' /etc/pawl)"
if grep -rlF -- "$root" "$work/system/usr/bin/pawl" >/dev/null; then
    fail "the program names the folder that it was built in"
fi

# ---- the installation of the README --------------------------------------------------------------

# Its first command built the packages above, if they are of this machine's release.
"$root/tests/docs/blocks" "$root/README.md" install | sed 's/^sudo //' >"$work/install"
require "the first command of README.md" scripts/package "$(head -n 1 "$work/install")"
mkdir -p "$work/system/srv/checkout/build"
ln -s /srv/now "$work/system/srv/checkout/build/packages"
quietly inside sh -exc "cd /srv/checkout; $(tail -n +2 "$work/install")"

# ---- the tutorial --------------------------------------------------------------------------------

unset DATABASE_URL PGDATABASE PGPASSWORD PGSERVICE PGOPTIONS
mkdir "$work/services"
chmod 755 "$work/services"
start_servers() { # FOLDER; sets port, database and bootstrap
    local url
    mkdir "$1"
    chmod 755 "$1"
    url=$("$root/scripts/services" postgres start "$1/postgres")
    bootstrap=$("$root/scripts/services" kafka start "$1/kafka")
    port=${url##*:}
    port=${port%%/*}
    database=postgresql://postgres@127.0.0.1:$port/payments
}
query() { psql -XAtq -v ON_ERROR_STOP=1 -d "$database" -c "$1"; }

start_servers "$work/services/tutorial"
for topic in payments receipts orders; do
    quietly "$root/scripts/services" kafka create-topic "$work/services/tutorial/kafka" "$topic" 1
done
free_port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
tutorial=$work/system/srv/tutorial
example=$work/system/usr/share/doc/pawl/examples/payments.toml
mkdir "$tutorial"
# The page names the default addresses. localhost may be unknown in a minimal system.
to_these_servers() {
    sed -e "s/127\.0\.0\.1:9092/$bootstrap/g" -e 's|//localhost/|//127.0.0.1/|g' -e "s/\b8000\b/$free_port/g" -e 's/^sudo //'
}
# The page promises 15 minutes. Commands are measured, and a reader is estimated, so this is a report and not a condition.
report_tutorial_time() { # SECONDS_OF_THE_COMMANDS
    local page=$root/docs/tutorial.md words blocks per_minute=200 per_block=15 seconds
    words=$(awk '/^```/ { code = !code; next } !code' "$page" | wc -w)
    blocks=$(grep -c '^<!-- tested: ' "$page")
    seconds=$(($1 + words * 60 / per_minute + blocks * per_block))
    say "the tutorial takes $((seconds / 60)) min $((seconds % 60)) s of the 15 min that it promises: commands $1 s," \
        "$words words at $per_minute per minute, $blocks blocks at $per_block s to copy each"
}
for name in install run receipts.py receipts.toml; do
    "$root/tests/docs/blocks" "$root/docs/tutorial.md" "$name" | to_these_servers >"$tutorial/$name"
done
cp -- "$example" "$work/payments.toml"
to_these_servers <"$work/payments.toml" >"$example"
started=$SECONDS
quietly inside sh -ec 'cd /srv/now && sh -ex ../tutorial/install'
quietly inside PGPORT="$port" PGUSER=postgres bash -ec 'cd /srv/tutorial && bash -o pipefail -ex run </dev/null'
report_tutorial_time $((SECONDS - started))
require "balances after the tutorial" 'alice 10, bob 20000, carol 25, dave 40' \
    "$(query "SELECT string_agg(id || ' ' || balance, ', ' ORDER BY id) FROM accounts")"
require "payments after the tutorial" '20003|20003' "$(query 'SELECT count(*), count(DISTINCT event_id) FROM ledger')"
require "duplicates in the tutorial" 2 "$(query 'SELECT sum(duplicate_count) FROM pawl.processed_kafka_offsets')"
require "dead letters after the tutorial" replayed "$(query 'SELECT status FROM pawl.dead_letters')"
require "calls in the tutorial" 1 "$(grep -c '^key [0-9a-f]\{64\} {"account":"alice","amount":10}$' "$tutorial/receipts.log")"
require "orders after the tutorial" 'o-1|alice|19.90' "$(query 'SELECT event_id, customer, total FROM orders')"
cp -- "$work/payments.toml" "$example"
"$root/scripts/services" stop-all "$work/services/tutorial"

# ---- a service, which is upgraded under load -----------------------------------------------------

start_servers "$work/services/service"
quietly createdb -h 127.0.0.1 -p "$port" -U postgres payments
sed -e "s/127.0.0.1:9092/$bootstrap/" -e "s|^url = .*|url = \"$database\"|" \
    "$work/system/usr/share/doc/pawl/examples/payments.toml" >"$work/system/etc/pawl/payments.toml"
quietly inside pawl migrate up --config /etc/pawl/payments.toml
quietly "$root/scripts/migrate" up --database "$database" --name payments --dir "$root/apps/payments/migrations"
query "INSERT INTO accounts (id) SELECT 'account-' || lpad(n::text, 4, '0') FROM generate_series(0, 999) AS n"
produce() { quietly "$producer" --bootstrap-servers "$bootstrap" --payments "$1"; }
for producer in "$root"/build/{package,release}/bin/payments-produce; do
    [[ ! -x $producer ]] || break
done
[[ -x $producer ]] || fail "payments-produce is not built: scripts/package"
produce 1000
quietly inside pawl check --config /etc/pawl/payments.toml
quietly inside chroot --userspec=pawl:pawl / pawl run --config /etc/pawl/payments.toml --drain
require "payments" 1000 "$(query 'SELECT count(*) FROM ledger')"

produce 40000
chroot --userspec=pawl:pawl "$work/system" env -i PATH=/usr/bin:/bin pawl run --config /etc/pawl/payments.toml \
    >"$work/service.log" 2>&1 &
pid=$!
some_are_there() { (($(query 'SELECT count(*) FROM ledger') > 3000)); }
wait_until 60 some_are_there || fail "waited in vain for payments"
quietly inside sh -ec "$("$root/tests/docs/blocks" "$root/docs/upgrade.md" unpack | sed "s|pawl_NEWER.deb|$(package_file next pawl)|")"
quietly inside apt-get install --yes --no-install-recommends "$(package_file next pawl)"
kill -s HUP "$pid"
# The version that a program says is the project's; the file that runs is the package's.
is_new() { [[ $(stat -Lc %i "/proc/$pid/exe") == "$(stat -c %i "$work/system/usr/bin/pawl")" ]]; }
wait_until 60 is_new || fail "waited in vain for the new program to run"
all_are_there() { (($(query 'SELECT count(*) FROM ledger') == wanted)); }
wanted=40000 # the first thousand of them were there already, and are duplicates
wait_until 120 all_are_there || fail "waited in vain for all payments"
require "entries of accounts" "$wanted" "$(query 'SELECT sum(entries) FROM accounts')"
kill -s TERM "$pid"
wait "$pid" || fail "the service ended with $?: $(tail -n 20 "$work/service.log")"
pid=

# ---- the same under systemd ----------------------------------------------------------------------

# Without --private-network the servers are on its 127.0.0.1, too. It would take our /proc for its own.
say "booting it"
umount "$work/system/proc"
systemd-nspawn --quiet --boot --register=no --keep-unit --directory="$work/system" --machine=pawl </dev/null \
    >"$work/boot.log" 2>&1 &
machine=$!
booted() { # COMMAND...: in the system that runs
    nsenter --target "$(pgrep --parent "$machine" | head -n 1)" --mount --uts --ipc --pid -- \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"
}
is_booted() { [[ $(booted systemctl is-system-running 2>/dev/null || true) == @(running|degraded) ]]; }
wait_until 120 is_booted || { tail -n 20 "$work/boot.log" >&2; fail "the system does not boot"; }
show() { booted systemctl show --property "$1" --value pawl@payments; } # PROPERTY
runs() { [[ $(show ActiveState) == active && $(show MainPID) != 0 ]]; }
service_log() { booted journalctl --unit pawl@payments --no-pager --output cat "$@"; }
quietly booted sh -ec "$("$root/tests/docs/blocks" "$root/docs/deploy.md" systemd)"
produce 41000
wanted=41000
wait_until 120 all_are_there || fail "waited in vain for the payments under systemd: $(service_log --lines 20)"

main=$(show MainPID)
quietly booted systemctl reload pawl@payments
begun_twice() { (($(service_log | grep -c 'consumer_started .* group=payments ') == 2)); }
wait_until 60 begun_twice || fail "waited in vain for the reload: $(service_log --lines 20)"
wait_until 60 runs || fail "the service does not run after a reload"
require "the process after a reload" "$main" "$(show MainPID)"

# An upgrade, backwards here, reloads what runs.
quietly booted apt-get install --yes --allow-downgrades "$(package_file now pawl)"
is_upgraded() {
    # shellcheck disable=SC2016  # for the shell inside
    booted sh -ec '[ "$(stat -Lc %i "/proc/$1/exe")" = "$(stat -c %i /usr/bin/pawl)" ]' sh "$main"
}
wait_until 60 is_upgraded || fail "waited in vain for the other program to run: $(service_log --lines 20)"
wait_until 60 runs || fail "the service does not run after an upgrade"

# A process that stands still is replaced.
mkdir "$work/system/etc/systemd/system/pawl@.service.d"
printf '[Service]\nWatchdogSec=5\n' >"$work/system/etc/systemd/system/pawl@.service.d/test.conf"
quietly booted systemctl daemon-reload
quietly booted systemctl restart pawl@payments
main=$(show MainPID)
booted sh -ec 'kill -s STOP "$1"' sh "$main"
is_replaced() { runs && [[ $(show NRestarts) == 1 && $(show MainPID) != "$main" ]]; }
wait_until 120 is_replaced || {
    booted systemctl status --no-pager --lines 40 pawl@payments >&2 || true
    fail "the watchdog did not replace process $main, which stands still"
}

quietly booted systemctl stop pawl@payments
require "the service after a stop" 'inactive success 0' "$(show ActiveState) $(show Result) $(show ExecMainStatus)"
quietly booted systemctl disable pawl@payments
rm -r -- "$work/system/etc/systemd/system/pawl@.service.d"
kill -s TERM "$machine"
wait "$machine" || fail "the system did not end: $(tail -n 5 "$work/boot.log")"
machine=
mount -t proc proc "$work/system/proc"

# ---- the library ---------------------------------------------------------------------------------

quietly inside apt-get install --yes --no-install-recommends "$(package_file next libpawl-dev)" g++ cmake ninja-build pkg-config
mkdir "$work/system/srv/outside"
for name in main.cpp CMakeLists.txt cmake.sh pkg-config.sh; do
    "$root/tests/docs/blocks" "$root/docs/cpp.md" "$name" >"$work/system/srv/outside/$name"
done
quietly inside CMAKE_GENERATOR=Ninja sh -ec 'cd /srv/outside && . ./cmake.sh && ./build/payments version'
quietly inside sh -ec 'cd /srv/outside && . ./pkg-config.sh && ldd payments | grep -q libpawl.so && ./payments version'

# ---- gone ----------------------------------------------------------------------------------------

quietly inside apt-get remove --yes pawl libpawl-dev
inside test ! -e /usr/bin/pawl || fail "/usr/bin/pawl is there after its removal"
inside test -e /etc/pawl/payments.toml || fail "a removal took a configuration away"
rm -- "$work/system/etc/pawl/payments.toml"
quietly inside apt-get purge --yes pawl libpawl-dev
left=$(cd -- "$work/system" && find . \( -path ./proc -o -path ./srv -o -path ./var/log -o -path ./var/cache \) -prune -o -name '*pawl*' -print)
require "files that are left" '' "$left"
say "the packages of $suite: 1 passed, 0 failed"
