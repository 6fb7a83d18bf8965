# shellcheck shell=bash
# Fetches a real Kafka broker for tests and the demo through Maven. Sourced by scripts/setup.

kafka_version=$(sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$root/scripts/lib/kafka-pom.xml")
copy_plugin=org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies

setup_kafka() {
    local folder="$deps/kafka-$kafka_version" started=$SECONDS
    if [[ -e $folder/.complete ]] && cmp -s "$folder/.complete" "$root/scripts/lib/kafka-pom.xml"; then
        say "  kafka-$kafka_version: there"
    else
        say "  fetching Kafka $kafka_version through Maven"
        fetch_kafka "$kafka_version" "$folder"
        cp -- "$root/scripts/lib/kafka-pom.xml" "$folder/.complete"
        say "  Kafka $kafka_version fetched in $((SECONDS - started)) s"
    fi
    archive_kafka_classes "$folder"
}

# The classes that a broker loads, as this JVM wants to find them (JEP 350): it starts in half the
# time with them. The archive holds for this JVM and this folder only; without one all works.
archive_kafka_classes() { # FOLDER
    local made_for broker="$scratch/broker"
    made_for="$(java -version 2>&1) $1"
    [[ ! -r $1/classes.jsa || ! -r $1/classes.for || $(<"$1/classes.for") != "$made_for" ]] || return 0
    rm -f -- "$1/classes.jsa"
    mkdir -p -- "$broker"
    if ! PAWL_KAFKA=$1 PAWL_KAFKA_ARCHIVE=$1/classes.new "$root/scripts/services" kafka start "$broker" >/dev/null ||
        ! "$root/scripts/services" kafka stop "$broker" || ! mv -- "$1/classes.new" "$1/classes.jsa"; then
        say "  cannot archive the classes of Kafka, so brokers start more slowly. The reason is above"
        return
    fi
    echo "$made_for" >"$1/classes.for"
}

# Kafka and all that it depends on, as scripts/lib/server-versions.sh knows it.
fetch_kafka() { # RELEASE FOLDER
    local log="$scratch/maven.log" attempt sum release sums
    find_server_version kafka "${1%.*}"
    rm -rf -- "$2"
    # Maven would leave its target folder beside the pom.
    mkdir -p "$scratch/kafka" "$2"
    cp -- "$root/scripts/lib/kafka-pom.xml" "$scratch/kafka/pom.xml"
    for attempt in 1 2 3; do
        # Kafka 3 has a logger of its own, which would dispute with the one of the pom.
        if mvn --batch-mode --quiet --file "$scratch/kafka/pom.xml" "$copy_plugin" "-Dkafka.version=$1" \
            -DexcludeArtifactIds=slf4j-reload4j -DoutputDirectory="$2/libs" >"$log" 2>&1; then
            sum=$(kafka_libraries_sum "$2/libs")
            [[ $1 != "$release" || $sum == "$sums" ]] ||
                fail "the libraries of Kafka $1 are not the expected ones (sum $sum). See scripts/lib/server-versions.sh"
            return
        fi
        say "  Maven failed (attempt $attempt of 3)"
    done
    tail -n 20 "$log" >&2
    fail "could not fetch Kafka $1. Without access to a Maven repository use --without-kafka: then neither tests with a real broker nor scripts/demo without --embedded-broker run"
}

# SHA-256 of the list of libraries, with the SHA-256 of each.
kafka_libraries_sum() { # FOLDER
    (cd -- "$1" && export LC_ALL=C && sha256sum -- *.jar | sha256sum | cut -d' ' -f1)
}
