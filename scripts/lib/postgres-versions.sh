# shellcheck shell=bash
# Other major versions of PostgreSQL than Debian's, for tests: fetched through Maven, as packed for
# embedded use, into .deps/postgresql-MAJOR/. Sourced by scripts/setup.

postgres_release() { # MAJOR
    case $1 in
        16) echo 16.15.0 ;;
        17) echo 17.11.0 ;;
        18) echo 18.6.0 ;;
        *) fail "--postgres knows 16, 17 and 18, not '$1'; Debian's own version needs no option" ;;
    esac
}

setup_postgres() { # MAJOR
    local major=$1 release folder archive architecture
    release=$(postgres_release "$major")
    folder="$deps/postgresql-$major"
    if [[ -r $folder/.complete && $(<"$folder/.complete") == "$release" ]]; then
        say "  postgresql-$release: there"
        return
    fi
    architecture=$(dpkg --print-architecture)
    [[ $architecture == arm64 ]] && architecture=arm64v8
    say "  fetching PostgreSQL $release through Maven"
    mkdir -p "$scratch/postgresql-$major"
    mvn --batch-mode --quiet --file "$root/scripts/lib/kafka-pom.xml" "${copy_plugin%:*}:unpack" \
        "-Dartifact=io.zonky.test.postgres:embedded-postgres-binaries-linux-$architecture:$release" \
        -DoutputDirectory="$scratch/postgresql-$major" -Dmdep.useSubDirectoryPerArtifact=false \
        -DmarkersDirectory="$scratch/markers" >"$scratch/maven.log" 2>&1 ||
        { tail -n 20 "$scratch/maven.log" >&2; fail "could not fetch PostgreSQL $release; Maven's reason stands above"; }
    archive=$(find "$scratch/postgresql-$major" -name '*.txz' -print -quit)
    [[ $archive ]] || fail "the package of PostgreSQL $release holds no archive"
    rm -rf -- "$folder"
    mkdir -p -- "$folder"
    tar --extract --xz --file "$archive" --directory "$folder"
    echo "$release" >"$folder/.complete"
}
