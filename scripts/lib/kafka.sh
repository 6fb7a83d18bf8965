# shellcheck shell=bash
# Fetches a real Kafka broker for tests and the demo through Maven. Sourced by scripts/setup.

kafka_version=$(sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$root/scripts/lib/kafka-pom.xml")
copy_plugin=org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies

setup_kafka() {
    local folder="$deps/kafka-$kafka_version" log="$scratch/maven.log" attempt
    if [[ -e $folder/.complete ]] && cmp -s "$folder/.complete" "$root/scripts/lib/kafka-pom.xml"; then
        say "  kafka-$kafka_version: there"
        return
    fi
    local started=$SECONDS
    say "  fetching Kafka $kafka_version through Maven"
    rm -rf -- "$folder"
    # Maven would leave its target folder beside the pom.
    mkdir -p "$scratch/kafka" "$folder"
    cp -- "$root/scripts/lib/kafka-pom.xml" "$scratch/kafka/pom.xml"
    for attempt in 1 2 3; do
        if mvn --batch-mode --quiet --file "$scratch/kafka/pom.xml" "$copy_plugin" \
            -DoutputDirectory="$folder/libs" >"$log" 2>&1; then
            cp -- "$root/scripts/lib/kafka-pom.xml" "$folder/.complete"
            say "  Kafka $kafka_version fetched in $((SECONDS - started)) s"
            return
        fi
        say "  Maven failed (try $attempt of 3)"
    done
    tail -n 20 "$log" >&2
    fail "could not fetch Kafka; without network to a Maven repository use --without-kafka (then tests on a real broker and scripts/demo without --embedded-broker do not run)"
}
