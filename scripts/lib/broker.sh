# shellcheck shell=bash
# A private Kafka: one node, broker and controller in one (KRaft). Sourced by scripts/services.

kafka_home=${PAWL_KAFKA:-$(find "$deps/" -maxdepth 2 -path '*/kafka-*/.complete' -printf '%h\n' 2>/dev/null | sort -V | tail -n 1 || true)}

# Half of what a short-lived JVM takes of a processor is the compiler C2 and the loading of classes.
# scripts/setup has a broker archive the classes (JEP 350) in PAWL_KAFKA_ARCHIVE; a JVM that the
# archive is not of says so and loads them. KAFKA_JVM_PERFORMANCE_OPTS is of Kafka's own scripts: who
# measures a broker sets it to -XX:+UseSerialGC.
read -ra kafka_jvm <<<"${KAFKA_JVM_PERFORMANCE_OPTS:--XX:+UseSerialGC -XX:TieredStopAtLevel=1}"
if [[ ${PAWL_KAFKA_ARCHIVE:-} ]]; then
    kafka_jvm+=("-XX:ArchiveClassesAtExit=$PAWL_KAFKA_ARCHIVE")
elif [[ -r $kafka_home/classes.jsa ]]; then
    kafka_jvm+=("-XX:SharedArchiveFile=$kafka_home/classes.jsa")
fi

kafka_java() { # JVM OPTIONS AND CLASS...
    [[ $kafka_home ]] || fail "no Kafka found in $deps. Run: scripts/setup"
    java "${kafka_jvm[@]}" -cp "$kafka_home/libs/*" -Dlog4j2.configurationFile="$kafka_log4j" "$@"
}
kafka_log4j=kafka-log4j2.properties

# By the name of its own library.
kafka_release() {
    find "$kafka_home/libs" -name 'kafka_2.13-*.jar' -printf '%f\n' | sed -E 's/^kafka_2.13-(.*)\.jar$/\1/'
}

# Small intervals, so that tests see retention, compaction and expired sessions soon. The session of
# the broker itself is Kafka's default: a shorter one would fence a broker that a busy machine keeps
# from its heartbeats, and a longer one keeps a killed broker from registering again.
kafka_write_conf() { # DIR PORT CONTROLLER_PORT
    local more='' protocols='' name protocol number
    if [[ -e $1/listeners ]]; then
        while read -r name protocol number; do
            more+=,$name://127.0.0.1:$number
            protocols+=,$name:$protocol
        done <"$1/listeners"
    fi
    {
        cat <<CONF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$3
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$2,CONTROLLER://127.0.0.1:$3$more
advertised.listeners=PLAINTEXT://127.0.0.1:$2$more
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT$protocols
log.dirs=data
auto.create.topics.enable=false
num.partitions=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
group.consumer.min.session.timeout.ms=1000
group.consumer.session.timeout.ms=3000
group.consumer.min.heartbeat.interval.ms=100
group.consumer.heartbeat.interval.ms=500
log.initial.task.delay.ms=500
log.retention.check.interval.ms=500
log.segment.delete.delay.ms=200
log.cleaner.backoff.ms=200
log.cleaner.dedupe.buffer.size=8388608
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
broker.session.timeout.ms=9000
broker.heartbeat.interval.ms=500
CONF
        # Before Kafka 4 the newer protocol of groups (KIP-848) is a preview.
        [[ $(kafka_release) != 3.* ]] ||
            echo "group.coordinator.rebalance.protocols=classic,consumer"
        [[ ! -e $1/extra.properties ]] || cat -- "$1/extra.properties"
    } >"$1/server.properties"
}

# One metadata request by hand (version 1, no topics): the broker must name itself in the answer.
kafka_answers() { # PORT
    local socket answer
    { exec {socket}<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return 1
    printf '\0\0\0\x12\0\3\0\1\0\0\0\1\0\4pawl\0\0\0\0' >&"$socket" 2>/dev/null || true
    # size, correlation id, number of brokers
    answer=$(timeout 2 head -c 12 <&"$socket" | od -An -v -tx1 | tr -d ' \n')
    exec {socket}>&-
    [[ ${answer:8} == 0000000100000001 ]]
}

kafka_await() { # DIR PORT LOG_OFFSET
    local end=$((SECONDS + 180)) # a busy machine takes its time
    while ((SECONDS < end)); do
        read_service "$1" || return 1
        tail -c "+$(($3 + 1))" "$1/service.log" | grep -q 'Kafka Server started' &&
            kafka_answers "$2" && return
        sleep 0.1
    done
    return 1
}

# Beside PLAINTEXT, a port each: a line with name, protocol and port.
kafka_write_listeners() { # NAME=PROTOCOL...
    local listener
    for listener in "$@"; do echo "${listener%%=*} ${listener#*=} $(free_port)"; done >listeners
}

# The further listeners stand in the array `listeners`; a restart keeps those of the first start.
kafka_start() { # DIR PORT CONF...
    local dir=$1 asked=$2 port controller attempt before setting
    shift 2
    (($(java_major) >= 17)) || fail "Kafka requires Java 17. Run: scripts/setup"
    [[ $kafka_home ]] || fail "no Kafka found in $deps. Run: scripts/setup"
    read_service "$dir" && fail "$kind already runs in $dir (pid $pid). Stop it first"
    cd -- "$dir"
    cp -- "$root/scripts/lib/kafka-log4j2.properties" "$kafka_log4j"
    kafka_release >release
    for setting in "$@"; do echo "$setting"; done >>extra.properties
    [[ ! $asked && -e port ]] && asked=$(<port)
    for attempt in 1 2 3 4 5 6 7 8 9 10; do
        port=${asked:-$(free_port)}
        if [[ -e controller_port ]]; then controller=$(<controller_port); else controller=$(free_port); fi
        ((${#listeners[@]} == 0)) || kafka_write_listeners "${listeners[@]}"
        kafka_write_conf "$dir" "$port" "$controller"
        if [[ ! -e data/meta.properties ]]; then
            kafka_java kafka.tools.StorageTool format \
                --config server.properties "--cluster-id=$(cluster_id)" >>service.log 2>&1 ||
                { tail -n 15 service.log >&2; fail "formatting Kafka's folder failed. The reason is above"; }
        fi
        before=$(log_size "$dir")
        starting=$dir
        launch "$dir" kafka java -Xmx512m "${kafka_jvm[@]}" -cp "$kafka_home/libs/*" \
            -Dlog4j2.configurationFile="$kafka_log4j" kafka.Kafka server.properties
        if kafka_await "$dir" "$port" "$before"; then
            echo "$port" >port
            echo "$controller" >controller_port
            starting=''
            kafka_bootstrap "$dir"
            return
        fi
        end_service "$dir" KILL 10
        [[ ! $asked ]] && port_was_taken "$dir" "$before" && continue
        tail -c "+$((before + 1))" service.log | tail -n 25 >&2
        fail "Kafka did not start in $dir. The end of its log is above"
    done
    fail "found no free port for Kafka in $attempt tries. Set --port"
}

# 16 random bytes in URL-safe base64, as Kafka's own tool makes them.
cluster_id() { head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '='; }

kafka_bootstrap() { # DIR [LISTENER]
    local number
    [[ -r $1/port ]] || fail "no Kafka was started in $1"
    if [[ ${2:-} ]]; then
        number=$(awk -v "name=$2" '$1 == name { print $3 }' "$1/listeners" 2>/dev/null) || true
        [[ $number ]] || fail "Kafka in $1 has no listener $2"
        echo "127.0.0.1:$number"
        return
    fi
    echo "127.0.0.1:$(<"$1/port")"
}

kafka_create_topic() { # DIR NAME PARTITIONS CONF...
    local bootstrap setting options=()
    bootstrap=$(kafka_bootstrap "$1")
    for setting in "${@:4}"; do options+=(--config "$setting"); done
    cd -- "$1"
    kafka_java org.apache.kafka.tools.TopicCommand \
        --bootstrap-server "$bootstrap" --create --topic "$2" --partitions "$3" \
        --replication-factor 1 "${options[@]}" >>service.log 2>&1 ||
        { tail -n 15 service.log >&2; fail "could not create the topic $2. The reason is above"; }
    echo "$2"
}

# As retention does, at once.
kafka_delete_records() { # DIR TOPIC PARTITION BEFORE_OFFSET
    local bootstrap file
    bootstrap=$(kafka_bootstrap "$1")
    cd -- "$1"
    file=$(mktemp)
    printf '{"version": 1, "partitions": [{"topic": "%s", "partition": %d, "offset": %d}]}' "$2" "$3" "$4" >"$file"
    kafka_java org.apache.kafka.tools.DeleteRecordsCommand \
        --bootstrap-server "$bootstrap" --offset-json-file "$file" >>service.log 2>&1 ||
        { rm -f -- "$file"; tail -n 15 service.log >&2; fail "could not delete records of $2. The reason is above"; }
    rm -f -- "$file"
}
