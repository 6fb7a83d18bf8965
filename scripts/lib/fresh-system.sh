# shellcheck shell=bash
# A Debian that has nothing but its base system, in a folder. Sourced by scripts/fresh and tests/package/debian_test.sh,
# behind common.sh and system.sh.

fresh_system_needs() {
    local program
    ((EUID == 0)) || fail "needs root to create a system. Run it with sudo"
    for program in debootstrap "$@"; do
        command -v "$program" >/dev/null || fail "needs $program: $(fresh_system_package "$program")"
    done
    [[ $system_id == debian ]] || fail "runs only on Debian, but this is $system_name"
    [[ $(archive_mirror) ]] || fail "apt of this machine names no Debian mirror. Check the sources in /etc/apt, and run: apt-get update"
}
fresh_system_package() { # PROGRAM
    case $1 in
        readelf) echo "apt-get install binutils" ;;
        systemd-nspawn) echo "apt-get install systemd-container" ;;
        unshare | setpriv) echo "apt-get install util-linux" ;;
        *) echo "apt-get install $1" ;;
    esac
}

# The sources of a release, with its updates, from where this machine has its own.
fresh_sources() { # SUITE
    # shellcheck disable=SC2016  # apt's own placeholders
    apt-get indextargets --format '$(SITE) $(CODENAME) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' |
        awk -v own="$system_codename" -v suite="$1" -v keyring="$(archive_keyring)" '
            $4 == "Debian" && ($2 == own || $2 == own "-updates" || $2 == own "-security") && $3 == "main" {
                sub("^" own, suite, $2)
                print "deb [signed-by=" keyring "] " $1 " " $2 " main"
            }' | sort -u
}

# Copies the settings with which this machine reaches the network: proxies, certificates, Maven's settings. This file names no
# host, so it works on any machine.
lend_network() { # FOLDER
    local name file
    apt-config dump Acquire::http Acquire::https | grep -E '^Acquire::https?::[A-Za-z]' >"$1/etc/apt/apt.conf.d/90machine" || true
    for file in /etc/apt/auth.conf /etc/apt/auth.conf.d /usr/local/share/ca-certificates; do
        [[ ! -e $file ]] || cp -rT -- "$file" "$1$file" || return
    done
    for file in "${HOME:-/root}/.m2/settings.xml" /etc/maven/settings.xml; do
        [[ -r $file ]] || continue
        { mkdir -p -- "$1/root/.m2" && cp -- "$file" "$1/root/.m2/settings.xml"; } || return
        break
    done
    chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin update-ca-certificates || return
    # A bundle that a variable names, wherever it is.
    for name in "${network_variables[@]}"; do
        file=${!name:-}
        [[ $file == /* && -f $file && ! -e $1$file ]] || continue
        { mkdir -p -- "$1${file%/*}" && cp -- "$file" "$1$file"; } || return
    done
}
network_variables=(
    http_proxy https_proxy ftp_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY
    SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE GIT_SSL_CAINFO MAVEN_OPTS MAVEN_ARGS
)
# Sets `network_environment`, for env.
read_network_environment() {
    local name
    network_environment=()
    for name in "${network_variables[@]}"; do
        [[ ! ${!name:-} ]] || network_environment+=("$name=${!name}")
    done
}

# Packages start no services in this system, and nothing is mounted in it. Callers check the exit code, which disables
# `set -e` here, so each step returns its own failure.
make_fresh_system() { # SUITE FOLDER PACKAGES, with commas between them
    local mirror
    mirror=$(archive_mirror) || return
    debootstrap --variant=minbase --include="ca-certificates${3:+,$3}" "$1" "$2" "$mirror" || return
    fresh_sources "$1" >"$2/etc/apt/sources.list" || return
    { printf '#!/bin/sh\nexit 101\n' >"$2/usr/sbin/policy-rc.d" && chmod 755 "$2/usr/sbin/policy-rc.d"; } || return
    cp --dereference -- /etc/resolv.conf "$2/etc/resolv.conf" || return
    lend_network "$2" || return
    read_network_environment
    chroot "$2" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C "${network_environment[@]}" \
        sh -ec 'apt-get update -qq && apt-get upgrade --yes -qq -o Dpkg::Use-Pty=0'
}
