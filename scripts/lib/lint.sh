# shellcheck shell=bash
# The formatter and the linter, pinned (scripts/setup --dev installs them). Sourced by scripts/setup and scripts/test.

# One formatter on every Debian: versions disagree about layout.
format_major=19
# From PyPI: before release 21 clang-tidy matched every declaration of the system's headers, which took
# most of its time.
clang_tidy=$deps/clang-tidy/bin/clang-tidy

setup_clang_tidy() {
    local folder=$deps/clang-tidy recipe
    recipe=$(sha256sum "$root/scripts/lib/clang-tidy-requirements.txt" | cut -d' ' -f1)
    if [[ -e $folder/.complete && $(<"$folder/.complete") == "$recipe" ]]; then
        say "  clang-tidy: there"
        return
    fi
    say "  fetching clang-tidy"
    rm -rf -- "$folder"
    install_wheels "$folder" clang-tidy-requirements.txt
    echo "$recipe" >"$folder/.complete"
}

# Every C++ file of ours, whether committed yet or not, with a zero byte behind each.
cpp_files() {
    if git -C "$root" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git -C "$root" ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.hpp'
    else
        (cd -- "$root" && find framework apps tests bench -name '*.[ch]pp' -print0)
    fi
}

check_format() {
    local files=() file
    while IFS= read -r -d '' file; do
        # A file that is deleted but not yet committed is still listed.
        [[ ! -e $root/$file ]] || files+=("$root/$file")
    done < <(cpp_files)
    ((${#files[@]})) || fail "found no C++ files to check"
    "clang-format-$format_major" --dry-run --Werror "${files[@]}" ||
        fail "the format differs. Run clang-format-$format_major -i on the files above"
}

# Files that passed, by what they were: for all checkouts of a user, as ccache keeps what was compiled.
lint_passed=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/pawl/lint

# Lints one file unless it passed already as it is now: with its headers, its flags and the rules.
lint_file() { # BUILD FILE
    local build=$1 file=$2 command key commands=$1/lint/compile_commands.json own
    # Without the precompiled header: clang cannot read g++'s, and a file must include what it uses.
    if [[ ! $commands -nt $build/compile_commands.json ]]; then
        mkdir -p -- "$build/lint"
        own=$commands.$BASHPID
        # Its path stands in quotation marks where it has a space.
        sed -E -e 's/ -Winvalid-pch//' \
            -e 's/( -Xclang)? -include(-pch -Xclang)? (\\"[^"]*cmake_pch\.hxx[^"]*"|[^ "]*cmake_pch\.hxx[^ "]*)//g' \
            "$build/compile_commands.json" >"$own"
        mv -f -- "$own" "$commands"
    fi
    # The compiler's own words for this file, without the launcher, up to where output begins.
    command=$(awk -v file="\"file\": \"$file\"" '/"command":/ { c = $0 } index($0, file) { print c; exit }' \
        "$commands" |
        sed -e 's/^ *"command": "//' -e 's/",$//' -e 's/\\"/"/g' -e 's/\\\\/\\/g' \
            -e 's/ -o [^ ]* -c / -E -C /' -e 's/^.*ccache //')
    # If no file that it was made of has changed, it need not be preprocessed, which takes a second.
    local rules sums depends
    rules=$({
        "$clang_tidy" --version
        cat "$root/.clang-tidy"
        echo "$command"
    } | sed "s#$root_pattern#.#g" | sha256sum | cut -d' ' -f1)
    sums=$lint_passed/$rules.sums
    [[ ! -e $sums ]] || ! (cd -- "$root" && sha256sum --check --status --strict "$sums" 2>/dev/null) || return 0
    depends=$build/lint/$rules.d
    # With its comments, because a NOLINT is one; and without the checkout's own place.
    key=$(set -o pipefail; {
        echo "$rules"
        cd -- "$build" && eval "$command -MD -MF $(printf %q "$depends")"
    } | sed "s#$root_pattern#.#g" | sha256sum | cut -d' ' -f1) || return 1
    if [[ ! -e $lint_passed/$key ]]; then
        "$clang_tidy" --quiet -p "$build/lint" "$file" 2> >(grep -v 'warnings generated' >&2) ||
            return 1
        : >"$lint_passed/$key"
    fi
    write_sums "$build" "$depends" >"$sums.$BASHPID" && mv -f -- "$sums.$BASHPID" "$sums"
}

# The sums of the files that a list of dependencies names, those of the checkout by their path in it.
write_sums() { # BUILD LIST
    set -o pipefail
    # A space within a path is written as "\ ".
    sed -e '1s/^[^:]*: *//' -e 's/ *\\$//' -e 's/\\ /\x01/g' "$2" | tr -s ' ' '\n' | sed -e '/^$/d' -e 's/\x01/ /g' |
        (cd -- "$1" && xargs -d '\n' realpath --no-symlinks) | sed "s#^$root_pattern/##" | sort -u |
        (cd -- "$root" && xargs -d '\n' sha256sum --)
}

check_lint() { # BUILD
    local file files=() root_pattern
    mkdir -p -- "$1/lint" "$lint_passed"
    find "$lint_passed" -type f -mtime +30 -delete
    root_pattern=$(sed 's/[][\\.*^$#]/\\&/g' <<<"$root")
    # Only what the build knows: its flags decide what a file means.
    while IFS= read -r file; do
        case $file in
            "$root"/framework/* | "$root"/apps/* | "$root"/bench/*) files+=("$file") ;;
        esac
    done < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$1/compile_commands.json" | sort -u)
    ((${#files[@]})) || fail "found no C++ files to lint in $1/compile_commands.json"
    export -f lint_file write_sums
    export root root_pattern clang_tidy lint_passed
    printf '%s\0' "${files[@]}" |
        xargs -0 -P "$(nproc)" -n 1 bash -c 'lint_file "$@"' lint "$1" ||
        fail "clang-tidy found the problems above. A suppression needs its reason next to it"
}
