# shellcheck shell=bash
# Debian packages: finds what is missing and installs that, nothing else. Sourced by scripts/setup.

# Development files: a package each, since only the package says that headers are there.
build_packages=(
    g++ make cmake ninja-build pkg-config ccache xz-utils patch ca-certificates
    libpq-dev libfmt-dev libcli11-dev libtomlplusplus-dev libsimdjson-dev libspdlog-dev
    nlohmann-json3-dev libssl-dev zlib1g-dev libzstd-dev liblz4-dev libcurl4-openssl-dev libsasl2-dev
    prometheus-cpp-dev
)

package_installed() {
    # pkg-config is a virtual name for pkgconf on Debian 13.
    dpkg-query -W -f='${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed && return
    [[ $1 == pkg-config ]] && command -v pkg-config >/dev/null
}

postgres_server_found() { compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }

# Prints the packages that are missing, one a line. Tools are looked for by what they do, so that
# one that came from elsewhere (a JDK of the user's) is not installed again.
missing_packages() {
    local with_kafka=$1 with_dev=$2 package
    for package in "${build_packages[@]}"; do
        package_installed "$package" || echo "$package"
    done
    # Its keys are for the sources of newer libraries.
    package_installed "$(archive_keyring_package)" || archive_keyring_package
    # cpp-httplib's build is a script of Python's, and tests are as well.
    command -v python3 >/dev/null || echo python3
    postgres_server_found || echo postgresql
    command -v psql >/dev/null || echo postgresql-client
    if [[ $with_kafka == yes ]]; then
        (($(java_major) >= 17)) || echo default-jre-headless
        command -v mvn >/dev/null || echo maven
    fi
    if [[ $with_dev == yes ]]; then
        command -v pgbouncer >/dev/null || [[ -x /usr/sbin/pgbouncer ]] || echo pgbouncer
        command -v redis-server >/dev/null || echo redis-server
        command -v redis-sentinel >/dev/null || echo redis-sentinel
        command -v openssl >/dev/null || echo openssl
        # Scripts of tests look at processes.
        command -v pgrep >/dev/null || echo procps
        # A token command's, as docs/security-kafka.md has it.
        command -v curl >/dev/null || echo curl
        # For promtool; the server itself is not started.
        command -v promtool >/dev/null || echo prometheus
        # The dashboard's test, which runs Debian's Python.
        command -v chromium >/dev/null || echo chromium
        command -v chromedriver >/dev/null || echo chromium-driver
        package_installed python3-selenium || echo python3-selenium
        # The Kubernetes manifest's test, with the same Python.
        package_installed python3-yaml || echo python3-yaml
        # model/check.
        command -v spin >/dev/null || echo spin
        # tests/cases, with the same Python.
        package_installed python3-psycopg || echo python3-psycopg
        package_installed python3-confluent-kafka || echo python3-confluent-kafka
        command -v "clang-format-$format_major" >/dev/null || echo "clang-format-$format_major"
        # scripts/fuzz, with the same release.
        command -v "clang++-$format_major" >/dev/null || echo "clang-$format_major"
        package_installed "libclang-rt-$format_major-dev" || echo "libclang-rt-$format_major-dev"
        missing_wheel_packages
    fi
}

as_root() {
    if ((EUID == 0)); then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo -- "$@"
    else
        fail "needs root to install Debian packages, and sudo is not installed. As root, run: $*"
    fi
}

# Runs as root. Debian starts a server as soon as its package is there; pawl uses private ones, so
# for the time of the installation services are not started and no "main" cluster is created.
install_packages_script='
set -eu
policy=/usr/sbin/policy-rc.d
cluster=/etc/postgresql-common/createcluster.d/pawl-setup.conf
undo=
trap "[ -z \"\$undo\" ] || rm -f \$undo" EXIT
trap "exit 1" HUP INT TERM
if [ ! -e "$policy" ]; then
    undo="$policy"
    printf "#!/bin/sh\nexit 101\n" >"$policy"
    chmod 755 "$policy"
fi
if [ ! -e /etc/postgresql-common/createcluster.conf ] && [ ! -e "$cluster" ]; then
    undo="$undo $cluster"
    mkdir -p /etc/postgresql-common/createcluster.d
    echo "create_main_cluster = false" >"$cluster"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get install --yes -qq -o Dpkg::Use-Pty=0 --no-install-recommends "$@"
'

install_packages() {
    local package absent=()
    # Lists that do not know a package are missing or old; others need no update.
    for package in "$@"; do
        apt-cache show --no-all-versions "$package" >/dev/null 2>&1 || absent+=("$package")
    done
    if ((${#absent[@]})); then
        say "  apt-get update (the lists do not contain ${absent[*]})"
        as_root apt-get update -qq >&2 || fail "apt-get update failed. Check the sources in /etc/apt"
    fi
    say "  apt-get install $*"
    # Lists may also name a version that the mirror no longer has: then update and try once more.
    as_root sh -c "$install_packages_script" install "$@" >"$scratch/apt.log" 2>&1 && return
    say "  failed; retrying after apt-get update"
    as_root apt-get update -qq >&2 || fail "apt-get update failed. Check the sources in /etc/apt"
    as_root sh -c "$install_packages_script" install "$@" >"$scratch/apt.log" 2>&1 && return
    tail -n 30 "$scratch/apt.log" >&2
    fail "could not install: $*. The reason of apt is above"
}
