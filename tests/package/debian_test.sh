#!/usr/bin/env bash
# Installs the Debian packages into a fresh system, runs a service from them, upgrades it under load, removes and purges
# it. As root; needs debootstrap and the network. Not part of ctest: it takes minutes, for another release than this
# machine's a quarter of an hour.
#   tests/package/debian_test.sh [bookworm|trixie]
# For this machine's release it takes the packages in build/packages, or makes them; for another one it builds them in a
# fresh system of that release first.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=scripts/lib/common.sh
source "$root/scripts/lib/common.sh"
# shellcheck source=scripts/lib/system.sh
source "$root/scripts/lib/system.sh"
# shellcheck source=tests/waiting.sh
source "$root/tests/waiting.sh"
read_system /etc/os-release
suite=${1:-$system_codename}

((EUID == 0)) || fail "needs root, for a system of its own"
command -v debootstrap >/dev/null || fail "needs debootstrap: apt-get install debootstrap"
[[ $system_id == debian ]] || fail "is for Debian, this is $system_name"
mirror=$(archive_mirror)
[[ $mirror ]] || fail "apt of this machine names no Debian mirror"

work=$(mktemp -d "${TMPDIR:-/tmp}/pawl-debian.XXXXXX")
chmod 755 "$work"
pid=
clean_up() {
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
    quietly debootstrap --variant=minbase --include="ca-certificates${2:+,$2}" "$suite" "$1" "$mirror"
    mount -t proc proc "$1/proc"
    printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
    chmod 755 "$1/usr/sbin/policy-rc.d"
}
# Where it stands inside.
package_file() { # now|next NAME
    local files=("$work/$1/$2"_*.deb)
    echo "/srv/$1/${files[0]##*/}"
}
inside() { chroot "$work/system" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }

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
        quietly chroot "$work/build" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/srv LC_ALL=C \
            /srv/pawl/scripts/package ${version:+--version "$version"}
        target=$work/${version:+next}
        [[ $version ]] || target=$work/now
        cp -- "$work"/build/srv/pawl/build/packages/* "$target"
    done
fi
ls -- "$work/now" >&2

# ---- installed -----------------------------------------------------------------------------------

new_system "$work/system" ''
cp -r -- "$work/now" "$work/next" "$work/system/srv/"
quietly inside apt-get install --yes --no-install-recommends "$(package_file now pawl)"
for file in /usr/bin/pawl /usr/bin/pawl-migrate /usr/share/pawl/migrations/0001_schema.sql \
    /usr/share/bash-completion/completions/pawl /usr/share/zsh/vendor-completions/_pawl; do
    inside test -e "$file" || fail "$file is not installed"
done
compgen -G "$work/system/usr/lib/systemd/system/pawl@.service" >/dev/null || fail "the unit is not installed"
missing=$(inside ldd /usr/bin/pawl | grep 'not found' || true)
require "libraries that are not there" '' "$missing"
# Each library is of a package that this one depends on.
depends=$(inside dpkg-query -W -f='${Depends}' pawl)
while read -r library; do
    package=$(inside dpkg -S "$(inside readlink -f "$library")" "$library" 2>/dev/null | head -n 1 || true)
    [[ $package ]] || fail "$library is of no package"
done < <(inside ldd /usr/bin/pawl | awk '$3 ~ /^\// { print $3 }')
say "depends on: $depends"
require "the version" "pawl (pawl $(sed -n 's/^project(pawl VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt"))" \
    "$(inside pawl version | head -n 1)"
require "the user" pawl "$(inside getent passwd pawl | cut -d: -f1)"
require "the folder of configurations" 'root pawl 750' "$(inside stat -c '%U %G %a' /etc/pawl)"
if grep -rlF -- "$root" "$work/system/usr/bin/pawl" >/dev/null; then
    fail "the program names the folder that it was built in"
fi

# ---- a service, which is upgraded under load -----------------------------------------------------

unset DATABASE_URL PGDATABASE PGPASSWORD PGSERVICE PGOPTIONS
mkdir "$work/services"
chmod 755 "$work/services"
url=$("$root/scripts/services" postgres start "$work/services/postgres")
bootstrap=$("$root/scripts/services" kafka start "$work/services/kafka")
port=${url##*:}
port=${port%%/*}
database=postgresql://postgres@127.0.0.1:$port/payments
query() { psql -XAtq -v ON_ERROR_STOP=1 -d "$database" -c "$1"; }
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

# ---- the library ---------------------------------------------------------------------------------

quietly inside apt-get install --yes --no-install-recommends "$(package_file next libpawl-dev)" g++ cmake ninja-build pkg-config
mkdir "$work/system/srv/outside"
"$root/tests/docs/blocks" "$root/README.md" main.cpp >"$work/system/srv/outside/main.cpp"
"$root/tests/docs/blocks" "$root/README.md" CMakeLists.txt >"$work/system/srv/outside/CMakeLists.txt"
# shellcheck disable=SC2016  # for the shell inside
quietly inside sh -ec 'cd /srv/outside
    cmake -G Ninja -B build . && cmake --build build && ./build/payments version
    g++ -std=c++20 main.cpp -o shared $(pkg-config --cflags --libs pawl) -lpq
    ldd shared | grep -q libpawl.so && ./shared version'

# ---- gone ----------------------------------------------------------------------------------------

quietly inside apt-get remove --yes pawl libpawl-dev
inside test ! -e /usr/bin/pawl || fail "/usr/bin/pawl is there after its removal"
inside test -e /etc/pawl/payments.toml || fail "a removal took a configuration away"
rm -- "$work/system/etc/pawl/payments.toml"
quietly inside apt-get purge --yes pawl libpawl-dev
left=$(cd -- "$work/system" && find . \( -path ./proc -o -path ./srv -o -path ./var/log -o -path ./var/cache \) -prune -o -name '*pawl*' -print)
require "files that are left" '' "$left"
say "the packages of $suite: 1 passed, 0 failed"
