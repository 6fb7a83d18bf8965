# shellcheck shell=bash
# Libraries that Debian 12 and Ubuntu 24.04 have only in older versions, built from the source packages of
# newer releases into .deps/NAME-VERSION-COMPILER/. Sourced by scripts/setup.
#
# The sources are the upstream archives, fetched by apt over a private configuration, so that signatures and hashes are
# checked as for every package and the system's own configuration stays as it is. Proxies and authentication of the
# system's apt keep working. What is changed in one stands in NAME.patch beside this file, with the reason.

# name and source package, preferred version, lowest that serves, first that does not, and the
# SHA-256 of the preferred version's archive. librdkafka: KIP-848 groups are complete from 2.12.
# cpp-httplib: strangers' requests reach it, and Debian 12's has known ways to stop its process.
libraries=(
    "libpqxx 7.10.0 7.10 8 d588bca36357eda8bcafd5bc1f95df1afe613fdc70c80e426fc89eecb828fc3e"
    "catch2 3.7.1 3.7 4 c991b247a1a0d7bb9c39aa35faf0fe9e19764213f28ffba3109388e62ee0269c"
    "librdkafka 2.14.2 2.12 3 4d53568c13717b167d12c7b2a0fe12aeb5d6bfe02de53df5b68f86d870a81b33"
    "hiredis 1.2.0 1.2 2 82ad632d31ee05da13b537c124f819eb88e18851d9cb0c30ae0552084811588c"
    "cpp-httplib 0.41.0+ds 0.41 1 7acb492bffdd95165677d22145c2c4890e6432c5ef53d0f781defe8dec48f567"
)

# Debug lines keep a backtrace readable. librdkafka's asserts stay on, as in its own build.
# ThreadSanitizer does not see threads that glibc's <threads.h> starts, and crashes in them. Defining
# that header's guard makes librdkafka's configuration choose its own layer over pthreads instead.
# librdkafka's CMake build does not define the last two (confluentinc/librdkafka#5136, fixed in 2.15.0): without them
# it never notices that all brokers are down, and never asks the bootstrap servers again.
recipe_librdkafka=(
    -DCMAKE_C_FLAGS="-D_THREADS_H=1 -DHAVE_ATOMICS_32_ATOMIC=1 -DHAVE_ATOMICS_64_ATOMIC=1"
    -DCMAKE_C_FLAGS_RELEASE="-O2 -g1" -DCMAKE_CXX_FLAGS_RELEASE="-O2 -g1"
    -DRDKAFKA_BUILD_STATIC=ON -DRDKAFKA_BUILD_EXAMPLES=OFF -DRDKAFKA_BUILD_TESTS=OFF
    -DWITH_SSL=ON -DWITH_SASL=ON -DWITH_ZLIB=ON -DWITH_ZSTD=ON -DWITH_CURL=ON -DENABLE_LZ4_EXT=ON
)
# The standard must be ours: libpqxx's headers record what the compiler could do at that level.
recipe_libpqxx=(
    -DCMAKE_CXX_FLAGS_RELEASE="-O2 -g1 -DNDEBUG" -DCMAKE_CXX_STANDARD=20
    -DSKIP_BUILD_TEST=ON -DBUILD_DOC=OFF
)
recipe_catch2=(
    -DCMAKE_CXX_FLAGS_RELEASE="-O2 -g1 -DNDEBUG" -DCMAKE_CXX_STANDARD=20
    -DBUILD_TESTING=OFF -DCATCH_INSTALL_DOCS=OFF
)
recipe_hiredis=(
    -DCMAKE_C_FLAGS_RELEASE="-O2 -g1" -DENABLE_SSL=ON -DDISABLE_TESTS=ON
)
# Without TLS and compression, which pawl's server does not use: what is absent cannot be attacked.
# Compiled, because its header takes longer than all that includes it.
recipe_cpp_httplib=(
    -DCMAKE_CXX_FLAGS_RELEASE="-O2 -g1" -DCMAKE_CXX_STANDARD=20
    -DHTTPLIB_COMPILE=ON -DHTTPLIB_USE_OPENSSL_IF_AVAILABLE=OFF -DHTTPLIB_USE_ZLIB_IF_AVAILABLE=OFF
    -DHTTPLIB_USE_BROTLI_IF_AVAILABLE=OFF -DHTTPLIB_USE_ZSTD_IF_AVAILABLE=OFF
    -DHTTPLIB_USE_NON_BLOCKING_GETADDRINFO=OFF
)
recipe_common=(
    -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_LIBDIR=lib
)

version_in_range() { # VERSION LOWEST BELOW
    dpkg --compare-versions "$1" ge "$2" && dpkg --compare-versions "$1" lt "$3"
}

# Writes a private apt configuration to FOLDER for the given suites and reads their lists.
private_apt_update() { # FOLDER SUITE...
    local folder=$1 suite keyring components
    shift
    keyring=$(archive_keyring)
    components=$(source_components)
    mkdir -p "$folder/lists/partial" "$folder/archives/partial"
    for suite in "$@"; do
        echo "deb-src [signed-by=$keyring] $mirror $suite $components"
    done >"$folder/sources.list"
    # A mirror may lag behind the archive. Here that does no harm: what is fetched is chosen by its
    # version and compared with a known hash.
    private_apt "$folder" apt-get update -qq -o Acquire::Check-Valid-Until=false >&2
}

private_apt() { # FOLDER PROGRAM ARGUMENTS...
    local folder=$1 program=$2
    shift 2
    "$program" -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder" \
        -o Dir::Etc::sourcelist="$folder/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
        -o APT::Sandbox::User="$(id -un)" "$@"
}

# The preferred upstream version if a suite offers it, else the newest in range; as Debian's version.
offered_version() { # FOLDER PACKAGE PREFERRED LOWEST BELOW
    local version upstream best=
    while read -r version; do
        upstream=${version#*:}
        upstream=${upstream%-*}
        version_in_range "$upstream" "$4" "$5" || continue
        if [[ $upstream == "$3" ]]; then
            echo "$version"
            return
        fi
        [[ $best ]] && dpkg --compare-versions "$version" lt "$best" || best=$version
    done < <(private_apt "$1" apt-cache madison "$2" | awk -F' *\\| *' '{ print $2 }')
    [[ $best ]] && echo "$best"
}

# Puts the upstream archive of a library into .deps/sources and prints its path.
fetch_source() { # NAME PREFERRED LOWEST BELOW SHA256
    local name=$1 preferred=$2 archive version='' apt suites
    archive=$(find "$deps/sources" -name "${name}_$preferred.orig.tar.*" -print -quit 2>/dev/null || true)
    [[ $archive ]] || archive=$(given_source "$1" "$2" "$5")
    if [[ $archive ]]; then
        check_source "$archive" "$@"
        echo "$archive"
        return
    fi
    if [[ -z ${mirror:-} ]]; then
        mirror=$(archive_mirror)
        [[ $mirror ]] || { say_sources; fail "apt has no archive of ${system_id^} in its sources. Add one to /etc/apt/sources.list.d, or use PAWL_SOURCES as described above"; }
    fi
    while read -r suites; do
        apt="$scratch/apt-${suites// /-}"
        if [[ ! -e $apt/read ]]; then
            say "  reading the source lists of ${system_id^} $suites"
            # shellcheck disable=SC2086  # a list of words
            private_apt_update "$apt" $suites ||
                say "  some lists could not be read; continuing without them"
            : >"$apt/read"
        fi
        version=$(offered_version "$apt" "${@:1:4}") && [[ ${version%-*} == *"$preferred" ]] && break
    done < <(source_suites)
    [[ $version ]] || { say_sources; fail "no release of ${system_id^} has $name >= $3 and < $4 as a source package. Use PAWL_SOURCES as described above"; }
    say "  fetching the source of $name $version"
    mkdir -p "$scratch/download" "$deps/sources"
    (cd "$scratch/download" &&
        private_apt "$apt" apt-get source -qq --download-only --only-source "$name=$version") >&2 ||
        fail "could not fetch the source of $name $version. The reason of apt is above"
    archive=$(find "$scratch/download" -name "${name}_*.orig.tar.*" ! -name '*.asc' -print -quit)
    [[ $archive ]] || fail "the source package of $name $version contains no upstream archive"
    check_source "$archive" "$@"
    mv -- "$archive" "$deps/sources/"
    echo "$deps/sources/${archive##*/}"
}

# An archive in $PAWL_SOURCES, known by its SHA-256 whatever it is called, now in .deps/sources.
given_source() { # NAME PREFERRED SHA256
    local file sum
    [[ ${PAWL_SOURCES:-} ]] || return 0
    [[ -d $PAWL_SOURCES ]] || fail "PAWL_SOURCES: the folder $PAWL_SOURCES does not exist"
    while IFS= read -r -d '' file; do
        sum=$(sha256sum <"$file")
        [[ ${sum%% *} == "$3" ]] || continue
        mkdir -p -- "$deps/sources"
        cp -- "$file" "$deps/sources/$1_$2.orig.tar.${file##*.}"
        echo "$deps/sources/$1_$2.orig.tar.${file##*.}"
        return
    done < <(find "$PAWL_SOURCES" -maxdepth 1 -type f -name '*.tar.*' -print0)
}

# Which archives a folder would have to hold.
say_sources() {
    local line name preferred sum
    say "Without sources from apt, copy these upstream archives, as Debian has them, to a folder, and run"
    say "  PAWL_SOURCES=FOLDER scripts/setup"
    for line in "${libraries[@]}"; do
        read -r name preferred _ _ sum <<<"$line"
        say "  ${name}_$preferred.orig.tar.*  SHA-256 $sum"
    done
}

# The preferred version must be the very archive that pawl is tested with; of another one only
# apt's signatures are known.
check_source() { # ARCHIVE NAME PREFERRED LOWEST BELOW SHA256
    local sum
    if [[ $1 != *"/$2_$3.orig.tar."* ]]; then
        say "  note: $2 $3, with which pawl is tested, is no longer available; using ${1##*/}"
        return
    fi
    sum=$(sha256sum <"$1")
    [[ ${sum%% *} == "$6" ]] ||
        fail "$1 is not the expected archive of $2 $3 (SHA-256 ${sum%% *}). Remove it and run this again"
}

# The newest complete build of a library for this compiler, or nothing.
installed_library() { # NAME LOWEST BELOW
    local stamp folder version
    for stamp in "$deps/$1-"*"-$compiler/.complete"; do
        [[ -e $stamp ]] || continue
        folder=${stamp%/.complete}
        version=${folder##*/"$1"-}
        version=${version%-"$compiler"}
        version_in_range "$version" "$2" "$3" || continue
        [[ $(<"$stamp") == "$(library_recipe "$1")" ]] || continue
        echo "$folder"
    done | sort -V | tail -n 1
}

# What decides the outcome of a build: when it changes, the library is built again.
library_recipe() { # NAME
    declare -n recipe="recipe_${1//-/_}"
    printf '%s\n' "${recipe_common[@]}" "${recipe[@]}"
    [[ ! -r $(library_patch "$1") ]] || sha256sum <"$(library_patch "$1")"
}

library_patch() { echo "$root/scripts/lib/$1.patch"; }

build_library() { # NAME PREFERRED LOWEST BELOW SHA256
    local name=$1 archive version prefix source build launcher=()
    declare -n recipe="recipe_${name//-/_}"
    archive=$(fetch_source "$@")
    version=${archive##*/"$name"_}
    version=${version%.orig.tar.*}
    prefix="$deps/$name-$version-$compiler"
    source="$scratch/$name"
    build="$scratch/$name-build"
    rm -rf -- "$source" "$build"
    mkdir -p "$source" "$build"
    tar --extract --file "$archive" --directory "$source" --strip-components=1
    if [[ -r $(library_patch "$name") ]] &&
        ! patch --directory "$source" --strip=1 --quiet --forward <"$(library_patch "$name")"; then
        [[ $version != "$2"* ]] || fail "scripts/lib/$name.patch does not fit $name $version"
        say "  note: scripts/lib/$name.patch does not fit $name $version, so it is built without the patch"
        rm -rf -- "$source"
        mkdir -p "$source"
        tar --extract --file "$archive" --directory "$source" --strip-components=1
    fi
    command -v ccache >/dev/null &&
        launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    say "  building $name $version ($compiler)"
    local log="$build/build.log"
    if ! { cmake -S "$source" -B "$build" -DCMAKE_INSTALL_PREFIX="$prefix" \
        "${recipe_common[@]}" "${recipe[@]}" "${launcher[@]}" &&
        cmake --build "$build" --parallel "$(nproc)" &&
        rm -rf -- "$deps/.new" && cmake --install "$build" --prefix "$deps/.new"; } >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        fail "building $name $version failed. The end of its log is above"
    fi
    # The stamp is written last, so that an interrupted build is done again; and a complete folder
    # takes the place of an older one at once, since somebody may be compiling against that.
    library_recipe "$name" >"$deps/.new/.complete"
    rm -rf -- "$prefix"
    mv -- "$deps/.new" "$prefix"
    say "  $name $version built in $((SECONDS - started)) s"
}

setup_libraries() {
    local line name sum preferred lowest below found started
    for line in "${libraries[@]}"; do
        read -r name preferred lowest below sum <<<"$line"
        found=$(installed_library "$name" "$lowest" "$below")
        if [[ $found ]]; then
            say "  ${found##*/}: installed"
            continue
        fi
        started=$SECONDS
        build_library "$name" "$preferred" "$lowest" "$below" "$sum"
    done
}
