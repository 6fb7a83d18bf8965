# shellcheck shell=bash
# Servers of other versions than those that tests usually run on, in .deps/versions/: PostgreSQL as
# packed for embedded use, and Kafka, both through Maven, and PgBouncer built from Debian's source.
# Sourced by scripts/setup and scripts/test.

# Server, version as one asks for it, release, and SHA-256 of what is fetched: of PostgreSQL's package
# for amd64 and for arm64 (- where there is none), of the list of Kafka's libraries with their SHA-256
# (kafka_libraries_sum), of PgBouncer's upstream archive. What has none is the system's package.
server_versions=(
    "postgresql 13 13.23.0 0713b8a6dbe13440718ea789eefca6ae562b004bc0541d9c21d20300529c1db2 -"
    "postgresql 14 14.24.0 2722d05eb22c671104c9918d59d8ba9f5656898f5452a0207bb4cce21eef5dc4 -"
    "postgresql 15 15.19.0 95f0b66fe72d4ca66c815773c44cb1196ea38552463e89a35f18114b3ed1565f 95baf4bd4af31b91b3050118df59388ed0064756b556b850669e0300aa7b9911"
    "postgresql 16 16.15.0 653abc065c682b85d3da50168fb95dc524bd85426cdec9ce3695a550ef431df2 f846a9989d686b7977d6eca9bc9d8b2b69e3f70c7eb60e032197d9c574a6136c"
    "postgresql 17 17.11.0 0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d 8b042e0ea418b1927d95399207950da0734d27fe01e29503ade3bdc464ad4c2b"
    "postgresql 18 18.6.0 008ee189eaa7ca2b58bd01dd950291e638b998392cf982297acd4779ec898ac1 5f54e016723afa6213925a8acb939bac52944b1d348f65c7a20f0cd2928c31be"
    "kafka 3.9 3.9.2 714f8fb15f68153e4505037d30d005862e291c1d8f892da2cc4a9b246e99db66"
    "kafka 4.0 4.0.2 de1755aedb9b3535c94ac438b9da94edffb7df2a50acc1a8099a9416d0408539"
    "kafka 4.1 4.1.1 3146eab2c9d285ac5441a78ab47519dadd909f596ae396fccd50a8dfd33ce094"
    "kafka 4.2 4.2.2 bc0413e8bc1b9039dfd736a1a01236f5eece1c128a609de38cbd1add379d6dfc"
    "kafka 4.3 4.3.1 97038031a1c67e22882a50d95aa98e54bb6823f2058492eecf1e4cb897a4cd30"
    "kafka 4.4 4.4.0 09016a350aefb8aa3d52c86214def2a1b70e39979eb159c0cc16237d6759d44e"
    "pgbouncer 1.18 1.18.0"
    "pgbouncer 1.24 1.24.1 da72a3aba13072876d055a3e58dd4aba4a5de4ed6148e73033185245598fd3e0"
)

# Sets release and sums of a version; fails with those that there are.
find_server_version() { # SERVER VERSION
    local line name version known=()
    for line in "${server_versions[@]}"; do
        read -r name version release sums <<<"$line"
        [[ $name != "$1" ]] && continue
        [[ $version != "$2" ]] || return 0
        known+=("$version")
    done
    fail "unknown version '$2' of $1. Use one of: ${known[*]}"
}

# Where a version is, once it is set up: what PAWL_POSTGRES, PAWL_KAFKA and PAWL_PGBOUNCER take.
server_place() { # SERVER VERSION
    local release sums
    find_server_version "$1" "$2"
    case $1 in
        postgresql) echo "$deps/versions/postgresql-$2" ;;
        kafka)
            if [[ $release == "$kafka_version" ]]; then
                echo "$deps/kafka-$release"
            else
                echo "$deps/versions/kafka-$release"
            fi
            ;;
        pgbouncer)
            if [[ $sums ]]; then
                echo "$deps/versions/pgbouncer-$release/bin/pgbouncer"
            else
                command -v pgbouncer || echo /usr/sbin/pgbouncer
            fi
            ;;
    esac
}

# The release that a place has, by its own word.
server_release() { # SERVER PLACE
    case $1 in
        postgresql) "$2/bin/postgres" --version | sed -nE 's/.* ([0-9.]+).*/\1/p' ;;
        kafka) find "$2/libs" -name 'kafka_2.13-*.jar' -printf '%f\n' | sed -nE 's/^kafka_2.13-([0-9.]+)\.jar$/\1/p' ;;
        pgbouncer) "$2" --version | sed -nE '1s/.* ([0-9.]+).*/\1/p' ;;
    esac
}

setup_server_version() { # SERVER VERSION
    local release sums place started=$SECONDS
    find_server_version "$1" "$2"
    place=$(server_place "$1" "$2")
    if [[ $1 == pgbouncer && ! $sums ]]; then
        [[ -x $place && $(server_release pgbouncer "$place") == "$release" ]] ||
            say "  pgbouncer $release: not the version of this system: skipped"
        return
    fi
    if [[ $1 == kafka && $release == "$kafka_version" ]]; then
        setup_kafka
        return
    fi
    if [[ -r $deps/versions/$1-$2.complete && $(<"$deps/versions/$1-$2.complete") == "$release $sums" ]]; then
        say "  $1 $release: installed"
        return
    fi
    say "  $1 $release"
    mkdir -p -- "$deps/versions"
    "setup_$1_version" "$2"
    echo "$release $sums" >"$deps/versions/$1-$2.complete"
    say "  $1 $release set up in $((SECONDS - started)) s"
}

# The following see release, sums and place of setup_server_version.

setup_postgresql_version() { # MAJOR
    local architecture expected sum package
    architecture=$(dpkg --print-architecture)
    case $architecture in
        amd64) expected=${sums% *} ;;
        arm64) expected=${sums#* } architecture=arm64v8 ;;
        *) expected=- ;;
    esac
    [[ $expected != - ]] || fail "no package of PostgreSQL $release exists for $architecture. Install PostgreSQL $1 and use PAWL_POSTGRES=FOLDER"
    mkdir -p -- "$scratch/postgresql-$1"
    mvn --batch-mode --quiet --file "$root/scripts/lib/kafka-pom.xml" "${copy_plugin%:*}:copy" \
        "-Dartifact=io.zonky.test.postgres:embedded-postgres-binaries-linux-$architecture:$release" \
        -DoutputDirectory="$scratch/postgresql-$1" >"$scratch/maven.log" 2>&1 ||
        { tail -n 20 "$scratch/maven.log" >&2; fail "could not fetch PostgreSQL $release. The reason of Maven is above"; }
    package=$(find "$scratch/postgresql-$1" -name '*.jar' -print -quit)
    sum=$(sha256sum <"$package")
    [[ ${sum%% *} == "$expected" ]] ||
        fail "the package of PostgreSQL $release is not the expected one (SHA-256 ${sum%% *}). See scripts/lib/server-versions.sh"
    rm -rf -- "$place"
    mkdir -p -- "$place"
    python3 -m zipfile -e "$package" "$scratch/postgresql-$1"
    tar --extract --xz --directory "$place" \
        --file "$(find "$scratch/postgresql-$1" -name '*.txz' -print -quit)"
}

setup_kafka_version() { fetch_kafka "$release" "$place"; }

setup_pgbouncer_version() {
    local archive source=$scratch/pgbouncer log=$scratch/pgbouncer.log
    archive=$(fetch_source pgbouncer "$release" "$release" "$release.1" "$sums")
    rm -rf -- "$place" "$source"
    mkdir -p -- "$source"
    tar --extract --file "$archive" --directory "$source" --strip-components=1
    (cd -- "$source" && ./configure --prefix="${place%/bin/*}" --without-cares --without-systemd &&
        make -j "$(nproc)" pgbouncer && install -D -m 755 pgbouncer "$place") >"$log" 2>&1 ||
        { tail -n 40 "$log" >&2; fail "building PgBouncer $release failed. The end of its log is above"; }
}
