#!/usr/bin/env bash
# Installs pawl into a folder, builds the C++ example of docs/cpp.md against it from outside, word for
# word, and runs it on private servers. Also compiles the examples of other pages and of the public
# headers, and a program that uses the installed pawl::testing.
#   package_test.sh BUILD_FOLDER
# CXX, CXXFLAGS, LDFLAGS and CMAKE_BUILD_TYPE: those of the build, so that sanitizers match.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
build=$(realpath -- "$1")
work=$(mktemp -d "${PAWL_TEST_DIR:-${TMPDIR:-/tmp}}/pawl package.XXXXXX")
chmod 711 "$work"
trap '"$root/scripts/services" stop-all "$work" || true; rm -rf -- "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
    printf 'package: %s\n' "$*" >&2
    exit 1
}
quietly() { # COMMAND...: what it says is shown only when it fails
    "$@" >"$work/log" 2>&1 || { tail -n 60 "$work/log" >&2; fail "failed: $*"; }
}
block() { "$root/tests/docs/blocks" "$root/${2:-docs/cpp.md}" "$1"; }

# Moved after the installation: no path of the build may stand in it.
quietly cmake --install "$build" --prefix "$work/first"
mv -- "$work/first" "$work/prefix"
prefix="$work/prefix"
share="$prefix/share/pawl"
for file in bin/pawl bin/pawl-migrate include/pawl/pawl.hpp share/pawl/scripts/migrate share/pawl/conf/reference.toml \
    share/pawl/migrations/0001_consumers.sql share/man/man1/pawl.1 share/man/man1/pawl-migrate.1 \
    share/bash-completion/completions/pawl share/zsh/vendor-completions/_pawl lib/systemd/system/pawl@.service; do
    [[ -e $prefix/$file ]] || fail "$file is not installed"
done
"$prefix/bin/pawl" version

# ---- what comes with the program -----------------------------------------------------------------

completed() { # WORDS...: what bash makes of the last of them
    bash -euc 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pawl; echo "${COMPREPLY[*]}"' \
        completed "$prefix/share/bash-completion/completions/pawl" "$@"
}
[[ $(completed pawl dlq rep) == replay ]] || fail "bash completes pawl dlq rep as: $(completed pawl dlq rep)"
[[ " $(completed pawl migrate up --) " == *' --lock-timeout '* ]] || fail "bash completes no option of migrate up"
[[ $(cd -- "$root" && completed pawl run --config READ) == README.md ]] || fail "bash completes no file"
! command -v zsh >/dev/null || zsh -n "$prefix/share/zsh/vendor-completions/_pawl" || fail "zsh cannot read its completion"
if command -v groff >/dev/null; then
    for page in "$prefix"/share/man/man1/*; do
        [[ ! $(groff -man -ww -z "$page" 2>&1) ]] || fail "$page: $(groff -man -ww -z "$page" 2>&1)"
    done
fi
if command -v systemd-analyze >/dev/null; then
    mkdir -- "$work/unit"
    sed -e "s|/usr/bin/pawl|$(command -v true)|" -e '/^\(User\|Group\)=/d' "$prefix/lib/systemd/system/pawl@.service" \
        >"$work/unit/pawl@payments.service"
    quietly systemd-analyze verify --man=no "$work/unit/pawl@payments.service"
fi

mkdir -- "$work/outside"
block main.cpp >"$work/outside/main.cpp"
block CMakeLists.txt >"$work/outside/CMakeLists.txt"
block service.cpp >"$work/outside/service.cpp"
block readme.cpp README.md >"$work/outside/readme.cpp"
{
    printf '#include <cstdint>\n#include <pawl/pawl.hpp>\n#include <pqxx/pqxx>\n#include <span>\n#include <string>\n'
    printf 'struct Payment {\n  std::string account;\n  std::int64_t amount;\n'
    printf '  static Payment parse(std::string_view json);\n};\nvoid add_to(pawl::App& app) {\n'
    block batch.cpp docs/batches.md
    printf '}\n'
} >"$work/outside/batch.cpp"
{
    printf '#include <optional>\n#include <pawl/pawl.hpp>\n#include <pqxx/pqxx>\n#include <span>\n#include <vector>\n'
    printf 'pawl::Response pay(pqxx::dbtransaction& tx, const pawl::Message& message);\n'
    printf 'void answer_with(pawl::App& app) {\n'
    block batch_response.cpp docs/stored-responses.md
    printf '}\n'
} >"$work/outside/batch_response.cpp"
{
    printf '#include <memory>\n#include <optional>\n#include <pawl/pawl.hpp>\n#include <string_view>\n'
    printf 'struct Span {\n  Span(std::string_view name, std::optional<std::string_view> parent);\n'
    printf '  void end(bool good);\n};\nvoid trace(pawl::App& app) {\n'
    block around.cpp
    printf '}\n'
} >"$work/outside/around.cpp"
{
    printf '#include <optional>\n#include <stop_token>\n#include <string>\n#include <string_view>\n'
    block leased.cpp docs/external-calls.md
} >"$work/outside/leased.cpp"
cp -- "$root/tests/package/fixtures.cpp" "$work/outside/"
# Each public header has an example at its head.
for folder in pawl pawl/testing; do
    mkdir -p -- "$work/outside/examples/$folder"
    for header in "$prefix/include/$folder"/*.hpp; do
        "$root/tests/package/example" "$header" >"$work/outside/examples/$folder/$(basename -- "$header" .hpp).cpp"
    done
done
cat >>"$work/outside/CMakeLists.txt" <<'CMAKE'

# What other pages show, and fixtures for tests, with the installed scripts.
add_library(shown OBJECT around.cpp batch.cpp batch_response.cpp leased.cpp readme.cpp service.cpp)
target_compile_features(shown PRIVATE cxx_std_20)
target_link_libraries(shown PRIVATE pawl::pawl)
add_executable(fixtures fixtures.cpp)
target_compile_features(fixtures PRIVATE cxx_std_20)
target_link_libraries(fixtures PRIVATE pawl::testing)
target_compile_definitions(fixtures PRIVATE "SCRIPTS=\"${pawl_SCRIPTS_DIR}\"")

file(GLOB examples "${CMAKE_CURRENT_SOURCE_DIR}/examples/pawl/*.cpp")
add_library(examples OBJECT ${examples})
target_compile_features(examples PRIVATE cxx_std_20)
target_link_libraries(examples PRIVATE pawl::pawl)

file(GLOB testing_examples "${CMAKE_CURRENT_SOURCE_DIR}/examples/pawl/testing/*.cpp")
add_library(testing_examples OBJECT ${testing_examples})
target_compile_features(testing_examples PRIVATE cxx_std_20)
target_link_libraries(testing_examples PRIVATE pawl::pawl pawl::testing)
CMAKE
quietly cmake -S "$work/outside" -B "$work/outside/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_BUILD_TYPE="${CMAKE_BUILD_TYPE:-RelWithDebInfo}"
quietly cmake --build "$work/outside/build"

"$work/outside/build/fixtures"

# ---- the example at work -------------------------------------------------------------------------

unset DATABASE_URL PGDATABASE PGPASSWORD PGSERVICE PGOPTIONS
url=$("$root/scripts/services" postgres start "$work/postgres")
bootstrap=$("$root/scripts/services" kafka start "$work/kafka")
PGPORT=${url##*:}
export PGPORT=${PGPORT%/*} PGHOST=127.0.0.1 PGUSER=postgres
query() { psql -XAtq -v ON_ERROR_STOP=1 -d postgresql://localhost/payments -c "$1"; }

quietly createdb payments
quietly "$share/scripts/migrate" up --database postgresql://localhost/payments
quietly "$share/scripts/migrate" up --database postgresql://localhost/payments --name payments \
    --dir "$root/apps/payments/migrations"
query "INSERT INTO accounts (id) SELECT 'account-' || lpad(n::text, 4, '0') FROM generate_series(0, 999) AS n"
quietly "$build/bin/payments-produce" --bootstrap-servers "$bootstrap" --payments 1000

require() { # WHAT EXPECTED ACTUAL
    [[ $2 == "$3" ]] || fail "$1: expected $2, found $3"
}
block cpp.toml | sed "s/127.0.0.1:9092/$bootstrap/" >"$work/cpp.toml"
quietly "$work/outside/build/payments" check --config "$work/cpp.toml"
quietly "$work/outside/build/payments" run --drain --config "$work/cpp.toml"
require "the program of docs/cpp.md: ledger" 1000 "$(query 'SELECT count(*) FROM ledger')"
require "the program of docs/cpp.md: entries" 1000 "$(query 'SELECT sum(entries) FROM accounts')"

# The example in apps/, in a group of its own: the same payments again, now with stored responses.
sed "s/127.0.0.1:9092/$bootstrap/; s/^group = .*/group = \"payments-again\"\nknown_consumers = [\"payments\"]/" \
    "$root/conf/payments-cpp.toml" >"$work/payments-cpp.toml"
quietly "$build/bin/payments" run --drain --config "$work/payments-cpp.toml"
require "apps/payments: ledger" 2000 "$(query 'SELECT count(*) FROM ledger')"
require "apps/payments: responses" 1000 \
    "$(query "SELECT count(*) FROM pawl.idempotency_keys WHERE convert_from(response, 'UTF8') LIKE '{\"balance\":%}'")"
grep -q '10 duplicates received their first receipt' "$work/log" || fail "apps/payments reported no duplicates"
