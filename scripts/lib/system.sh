# shellcheck shell=bash
# Which system this is, and where its packages' sources are. Sourced by scripts/setup and others.

# Sets system_id, system_release (12, 24.04), system_codename and system_name; fails on what pawl is not
# set up on.
read_system() { # FILE: /etc/os-release
    local words
    mapfile -t words < <(
        # shellcheck source=/dev/null
        { . "$1"; } 2>/dev/null || true
        printf '%s\n' "${ID:-}" "${VERSION_ID:-}" "${VERSION_CODENAME:-}" "${PRETTY_NAME:-another system}"
    )
    system_id=${words[0]} system_release=${words[1]} system_codename=${words[2]} system_name=${words[3]}
    local first=
    case $system_id in
        debian) first=12 ;;
        ubuntu) first=24.04 ;;
    esac
    # Debian's testing and unstable have no number.
    if [[ ! $first ]] || ! command -v apt-get >/dev/null ||
        { [[ $system_release ]] && dpkg --compare-versions "$system_release" lt "$first"; }; then
        fail "runs on Debian 12, Ubuntu 24.04, and later, but this is $system_name. cmake/Dependencies.cmake lists the libraries to install manually"
    fi
}

archive_keyring_package() {
    if [[ $system_id == ubuntu ]]; then echo ubuntu-keyring; else echo debian-archive-keyring; fi
}

# The file with the keys of the archive that sources are taken from.
archive_keyring() {
    local candidate
    for candidate in "/usr/share/keyrings/$system_id-archive-keyring".{gpg,pgp}; do
        [[ ! -r $candidate ]] || { echo "$candidate" && return; }
    done
    fail "no $system_id-archive-keyring in /usr/share/keyrings. Run: apt-get install $(archive_keyring_package)"
}

# The mirror that this machine's apt already uses; no host is written down anywhere here.
archive_mirror() {
    local releases='^(bookworm|trixie|forky|sid|oldstable|stable|testing|unstable)$'
    [[ $system_id != ubuntu ]] || releases="^$system_codename\$"
    # shellcheck disable=SC2016  # apt's own placeholders
    apt-get indextargets --format '$(SITE) $(RELEASE) $(ORIGIN)' 'Created-By: Packages' |
        awk -v releases="$releases" -v "origin=${system_id^}" \
            '$2 ~ releases && $3 == origin { print $1; exit }'
}

# Releases that have newer sources: those that may be enough, and then one more.
source_suites() {
    if [[ $system_id == ubuntu ]]; then
        printf '%s\n' "resolute" "resolute devel"
    else
        printf '%s\n' "trixie forky" "trixie forky sid"
    fi
}

source_components() {
    if [[ $system_id == ubuntu ]]; then echo "main universe"; else echo main; fi
}
