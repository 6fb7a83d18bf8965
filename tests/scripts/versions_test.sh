#!/usr/bin/env bash
# scripts/setup's knowledge of systems and archives, and scripts/test --matrix's of servers and results, without a server
# and without the network.
#   versions_test.sh FOLDER_OF_THE_BUILD
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
build=$(realpath -- "$1")
# shellcheck source=scripts/lib/common.sh
source "$root/scripts/lib/common.sh"
# shellcheck source=scripts/lib/system.sh
source "$root/scripts/lib/system.sh"
# shellcheck source=scripts/lib/libraries.sh
source "$root/scripts/lib/libraries.sh"
# shellcheck source=scripts/lib/kafka.sh
source "$root/scripts/lib/kafka.sh"
# shellcheck source=scripts/lib/server-versions.sh
source "$root/scripts/lib/server-versions.sh"
# shellcheck source=scripts/lib/matrix.sh
source "$root/scripts/lib/matrix.sh"

work=$(mktemp -d "${PAWL_TEST_DIR:-${TMPDIR:-/tmp}}/pawl versions.XXXXXX")
trap 'rm -rf -- "$work"' EXIT

failures=0
is() { # WHAT EXPECTED ACTUAL
    [[ $2 == "$3" ]] && return
    printf 'FAILED: %s: expected "%s", found "%s"\n' "$1" "$2" "$3"
    failures=$((failures + 1))
}
has() { # WHAT PART TEXT
    [[ $3 == *"$2"* ]] && return
    printf 'FAILED: %s: "%s" is not in "%s"\n' "$1" "$2" "$3"
    failures=$((failures + 1))
}

# ---- the system ----------------------------------------------------------------------------------

system() { # ID VERSION_ID CODENAME NAME: what read_system makes of it
    printf 'ID=%s\nVERSION_ID="%s"\nVERSION_CODENAME=%s\nPRETTY_NAME="%s"\n' "$@" >"$work/os-release"
    # shellcheck disable=SC2154  # read_system sets them
    (read_system "$work/os-release" && echo "$system_id $system_release $system_codename") 2>&1 || true
}
is 'Debian 12' 'debian 12 bookworm' "$(system debian 12 bookworm 'Debian GNU/Linux 12 (bookworm)')"
is 'Debian 13' 'debian 13 trixie' "$(system debian 13 trixie 'Debian GNU/Linux 13 (trixie)')"
is "Debian's unstable" 'debian  sid' "$(system debian '' sid 'Debian GNU/Linux sid')"
is 'Ubuntu 24.04' 'ubuntu 24.04 noble' "$(system ubuntu 24.04 noble 'Ubuntu 24.04.3 LTS')"
is 'Ubuntu 26.04' 'ubuntu 26.04 resolute' "$(system ubuntu 26.04 resolute 'Ubuntu 26.04 LTS')"
has 'Debian 11' 'this is Debian GNU/Linux 11' "$(system debian 11 bullseye 'Debian GNU/Linux 11 (bullseye)')"
has 'Ubuntu 22.04' 'this is Ubuntu 22.04 LTS' "$(system ubuntu 22.04 jammy 'Ubuntu 22.04 LTS')"
has 'another' 'this is Fedora Linux 42' "$(system fedora 42 '' 'Fedora Linux 42')"
rm -- "$work/os-release"
has 'an unknown one' 'this is another system' "$( (read_system "$work/os-release") 2>&1 || true)"

# What apt's `indextargets` says on such systems: site, release, origin.
apt-get() { printf '%s\n' "${targets[@]}"; }
# shellcheck disable=SC2034
system_id=ubuntu system_codename=noble
targets=('https://a.example/ubuntu noble-updates Ubuntu' 'https://ppa.example/x noble LP-PPA-x'
    'https://b.example/ubuntu noble Ubuntu')
is "Ubuntu's mirror" https://b.example/ubuntu "$(archive_mirror)"
is "components of Ubuntu's" 'main universe' "$(source_components)"
is "the package with Ubuntu's keys" ubuntu-keyring "$(archive_keyring_package)"
has "Ubuntu's newer releases" resolute "$(source_suites)"
# shellcheck disable=SC2034
system_id=debian system_codename=bookworm
targets=('https://a.example/security bookworm-security Debian' 'https://other.example/apt bookworm Other'
    'https://b.example/debian bookworm Debian')
is "Debian's mirror" https://b.example/debian "$(archive_mirror)"
targets=('https://a.example/x stable Other')
is 'no mirror' '' "$(archive_mirror)"
unset -f apt-get

# ---- archives that are given ---------------------------------------------------------------------

deps=$work/deps
echo 'an archive' >"$work/whatever.tar.gz"
echo 'another one' >"$work/first.tar.gz"
sum=$(sha256sum <"$work/whatever.tar.gz")
sum=${sum%% *}
is 'no folder with archives' '' "$(PAWL_SOURCES='' given_source some 1.2 "$sum")"
is 'an archive of any name' "$deps/sources/some_1.2.orig.tar.gz" "$(PAWL_SOURCES=$work given_source some 1.2 "$sum")"
is 'what is in it' 'an archive' "$(cat "$deps/sources/some_1.2.orig.tar.gz")"
is 'an archive that is not there' '' "$(PAWL_SOURCES=$work given_source some 1.2 "${sum//[0-9]/0}")"
has 'a folder that is not there' 'PAWL_SOURCES: the folder' "$( (PAWL_SOURCES=$work/none given_source some 1.2 "$sum") 2>&1 || true)"
said=$(say_sources 2>&1)
for line in "${libraries[@]}"; do
    read -r name preferred _ _ sum <<<"$line"
    has 'archives to bring' "${name}_$preferred.orig.tar.*  SHA-256 $sum" "$said"
done

# ---- servers -------------------------------------------------------------------------------------

find_server_version kafka "${kafka_version%.*}"
# shellcheck disable=SC2154  # find_server_version sets them
is "the release of setup's own Kafka" "$kafka_version" "$release"
is "where setup's own Kafka is" "$deps/kafka-$kafka_version" "$(server_place kafka "${kafka_version%.*}")"
is 'where another Kafka is' "$deps/versions/kafka-3.9.2" "$(server_place kafka 3.9)"
is 'where a PostgreSQL is' "$deps/versions/postgresql-18" "$(server_place postgresql 18)"
has 'an unknown version' "unknown version '12' of postgresql. Use one of: 13 14" "$( (find_server_version postgresql 12) 2>&1 || true)"
mkdir -p -- "$work/kafka/libs"
touch "$work/kafka/libs/kafka_2.13-4.2.2.jar" "$work/kafka/libs/kafka-clients-4.2.2.jar"
is "a Kafka's release" 4.2.2 "$(server_release kafka "$work/kafka")"
for version in 'postgres (PostgreSQL) 18.6|postgresql|bin/postgres|18.6' 'PgBouncer 1.24.1|pgbouncer||1.24.1' \
    'postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)|postgresql|bin/postgres|15.18'; do
    IFS='|' read -r said server program expected <<<"$version"
    mkdir -p -- "$work/$expected/bin"
    printf '#!/bin/sh\necho "%s"\n' "$said" >"$work/$expected/${program:-program}"
    chmod 755 "$work/$expected/${program:-program}"
    place=$work/$expected
    [[ $program ]] || place+=/program
    is "what $said is" "$expected" "$(server_release "$server" "$place")"
done

# ---- the matrix ----------------------------------------------------------------------------------

programs=" $(ctest --test-dir "$build" --show-only | sed -nE 's/^ *Test +#[0-9]+: //p' | tr '\n' ' ')"
built=" $(cmake --build "$build" --target help 2>/dev/null | sed -E 's/: .*//; s/^\.\.\. //' | tr '\n' ' ')"
while read -r name; do
    for test in $(matrix_tests "$name"); do
        [[ $programs == *" $test "* ]] || is "$name" 'a test of the build' "$test"
    done
    for target in $(matrix_targets "${name%-*}"); do
        [[ $built == *" $target "* ]] || is "$name" 'a target of the build' "$target"
    done
    grep -q "^${name%-*}"$'\t'"${name##*-}"$'\t' "$matrix_results" || is 'results.tsv' "a line of $name" none
done < <(matrix_names)
[[ " $(matrix_tests postgresql-13 | tr '\n' ' ')" != *retention* ]] || is 'PostgreSQL 13' 'no retention' retention
[[ " $(matrix_tests postgresql-14 | tr '\n' ' ')" == *retention* ]] || is 'PostgreSQL 14' retention none

# The tables are those of the results.
write_versions "$work/documents"
for file in README.md docs/reference/versions.md; do
    cmp -s -- "$work/documents/$file" "$root/$file" ||
        is "$file" 'the table of tests/matrix/results.tsv' 'another; run: scripts/documents'
done

matrix_results=$work/results.tsv
printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' postgresql 13 tested 13.1 2026-01-02 5 60 '' \
    postgresql 'before 13' no '' '' '' '' 'too old' kafka 4.0 tested 4.0.1 2026-01-03 7 80 '' >"$matrix_results"
matrix_record postgresql 14 tested 14.1 2026-01-04 5 61 'a note'
matrix_record postgresql 13 no 13.2 2026-01-04 5 62 'failed: a b'
matrix_record pgbouncer 1.18 tested 1.18.0 2026-01-04 2 63 ''
is 'the lines' '13 no|before 13 no|14 tested|4.0 tested|1.18 tested' \
    "$(awk -F'\t' '{ printf "%s%s %s", (NR > 1 ? "|" : ""), $2, $3 }' "$matrix_results")"
is 'the columns of each' 8 "$(awk -F'\t' '{ print NF }' "$matrix_results" | sort -u)"
has 'the summary' '| PostgreSQL | 14.1 (2026-01-04) |  | 13, before 13 |' "$(matrix_summary)"
has 'the table' '| PostgreSQL | 14 | tested | 14.1 | 2026-01-04 | 5 | 61 s | a note |' "$(matrix_table)"

printf '%s\n' 'kafka java -cp /k/libs/*' 'postgres setpriv -- /pg/13/bin/postgres -D x' >"$work/started"
is 'nothing foreign' '' "$(matrix_strangers postgresql /pg/13 "$work/started")"
has 'a foreign server' /pg/13/bin "$(matrix_strangers postgresql /pg/14 "$work/started")"
if matrix_strangers pgbouncer /pgbouncer "$work/started" >"$work/none"; then is 'no server' refused accepted; fi

if ((failures)); then
    echo "versions: $failures failed"
    exit 1
fi
echo "versions: passed"
