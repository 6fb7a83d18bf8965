-- The database, its consumers, and their processes.
--
-- Each object name is qualified with "pawl.". scripts/migrate --schema replaces that schema name.
-- docs/architecture/offset-store.md gives the reasons for the schema. The comments on tables and columns are for operators
-- who query it.

-- ---- the database -----------------------------------------------------------------------------------------

CREATE TABLE pawl.database_identity (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    database_id uuid NOT NULL DEFAULT gen_random_uuid(),
    created_at  timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE pawl.database_identity IS
    'One row: identifies this database in the metadata of offsets committed to Kafka, so that pawl detects a wrong or restored database.';
COMMENT ON COLUMN pawl.database_identity.only_row IS 'Always true: the table has exactly one row.';
COMMENT ON COLUMN pawl.database_identity.database_id IS
    'Random ID of this database. A copy or a restore has the same ID.';
COMMENT ON COLUMN pawl.database_identity.created_at IS 'When the schema was created.';

INSERT INTO pawl.database_identity DEFAULT VALUES;

-- Raises unless this is the database in which the process started. A pooler may route the next transaction to another one.
CREATE FUNCTION pawl.require_database(p_database_id uuid)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    here uuid;
BEGIN
    SELECT i.database_id INTO here FROM pawl.database_identity i;
    IF here IS DISTINCT FROM p_database_id THEN
        RAISE EXCEPTION 'this is database %, but the process started in database %', coalesce(here::text, 'without an identity'),
                        p_database_id
            USING ERRCODE = 'PW019';
    END IF;
END
$$;

-- Raises because an earlier transaction of this session, or a function that it called, left settings behind.
CREATE FUNCTION pawl.reject_session()
RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a setting of this session has changed since the session started'
        USING ERRCODE = 'PW018';
END
$$;

-- ---- consumers and their topics ---------------------------------------------------------------------------

CREATE TABLE pawl.consumers (
    consumer_id      integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster          text NOT NULL,
    group_id         text NOT NULL,
    kafka_cluster_id text,
    created_at       timestamptz NOT NULL DEFAULT now(),
    UNIQUE (cluster, group_id)
);
COMMENT ON TABLE pawl.consumers IS
    'Consumers of this database: one row per kafka.cluster and kafka.group.';
COMMENT ON COLUMN pawl.consumers.consumer_id IS 'Number of the consumer in all other tables.';
COMMENT ON COLUMN pawl.consumers.cluster IS 'kafka.cluster: the name that the configuration gives the Kafka cluster.';
COMMENT ON COLUMN pawl.consumers.group_id IS 'kafka.group: the consumer group.';
COMMENT ON COLUMN pawl.consumers.kafka_cluster_id IS
    'ID of the Kafka cluster that the consumer connected to first. pawl halts if the ID differs.';
COMMENT ON COLUMN pawl.consumers.created_at IS 'When a process of the consumer first started.';

CREATE TABLE pawl.consumer_topics (
    source_id         integer GENERATED ALWAYS AS IDENTITY UNIQUE,
    consumer_id       integer NOT NULL REFERENCES pawl.consumers,
    topic             text COLLATE "C" NOT NULL,
    partitions        integer NOT NULL CHECK (partitions > 0),
    start_policy      text NOT NULL,
    first_assigned_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer_id, topic)
);
COMMENT ON TABLE pawl.consumer_topics IS
    'Topics of a consumer. The initial offsets of all partitions are stored when the topic is first assigned.';
COMMENT ON COLUMN pawl.consumer_topics.source_id IS 'Number of this topic of this consumer in other tables.';
COMMENT ON COLUMN pawl.consumer_topics.consumer_id IS 'The consumer (pawl.consumers).';
COMMENT ON COLUMN pawl.consumer_topics.topic IS 'The topic.';
COMMENT ON COLUMN pawl.consumer_topics.partitions IS
    'Number of partitions at the first assignment. Partitions that are added later start at their first offset.';
COMMENT ON COLUMN pawl.consumer_topics.start_policy IS
    'kafka.start at the first assignment: how the initial offsets were chosen.';
COMMENT ON COLUMN pawl.consumer_topics.first_assigned_at IS
    'When the topic was first assigned and its initial offsets were stored.';

CREATE TABLE pawl.topic_patterns (
    consumer_id   integer NOT NULL REFERENCES pawl.consumers,
    pattern       text COLLATE "C" NOT NULL,
    first_topics  text[] COLLATE "C" NOT NULL,
    first_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer_id, pattern)
);
COMMENT ON TABLE pawl.topic_patterns IS
    'Topic patterns of a consumer''s handlers, with the topics that each pattern first matched.';
COMMENT ON COLUMN pawl.topic_patterns.consumer_id IS 'The consumer (pawl.consumers).';
COMMENT ON COLUMN pawl.topic_patterns.pattern IS 'The regular expression, as configured.';
COMMENT ON COLUMN pawl.topic_patterns.first_topics IS
    'Topics that matched at first: they start as kafka.start specifies. Topics that match later start at their first offset.';
COMMENT ON COLUMN pawl.topic_patterns.first_seen_at IS 'When a process of the consumer first used the pattern.';

-- ---- processes --------------------------------------------------------------------------------------------

-- For warnings and `pawl status` only: nothing else depends on these two tables. Each process writes its rows periodically
-- and deletes them when it stops.
CREATE TABLE pawl.processes (
    consumer_id integer NOT NULL,
    owner       text NOT NULL,
    topic       text COLLATE "C" NOT NULL,
    handlers    text NOT NULL,
    conditions  text NOT NULL,
    keys        text NOT NULL,
    policies    text NOT NULL,
    seen_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer_id, owner, topic)
) WITH (fillfactor = 20);
COMMENT ON TABLE pawl.processes IS
    'Running processes and how each handles a topic, as digests. A row that is older than 20 s belongs to a process that has ended.';
COMMENT ON COLUMN pawl.processes.consumer_id IS 'The consumer (pawl.consumers).';
COMMENT ON COLUMN pawl.processes.owner IS 'The process: HOST:PID:RANDOM, as in processed_kafka_offsets.owner.';
COMMENT ON COLUMN pawl.processes.topic IS 'The topic.';
COMMENT ON COLUMN pawl.processes.handlers IS
    'Digest of the definitions of the topic''s handlers. It differs if the configurations differ.';
COMMENT ON COLUMN pawl.processes.conditions IS 'Digest of which messages each handler accepts.';
COMMENT ON COLUMN pawl.processes.keys IS 'Digest of how idempotency keys are derived.';
COMMENT ON COLUMN pawl.processes.policies IS 'Digest of the failure policies.';
COMMENT ON COLUMN pawl.processes.seen_at IS 'When the process last wrote the row.';

CREATE TABLE pawl.process_conditions (
    consumer_id integer NOT NULL,
    owner       text NOT NULL,
    conditions  jsonb NOT NULL,
    seen_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer_id, owner)
) WITH (fillfactor = 50);
COMMENT ON TABLE pawl.process_conditions IS
    'What messages of a running process wait for outside of it. A row that is older than 20 s belongs to a process that has ended.';
COMMENT ON COLUMN pawl.process_conditions.consumer_id IS 'The consumer (pawl.consumers).';
COMMENT ON COLUMN pawl.process_conditions.owner IS 'The process, as in pawl.processes.';
COMMENT ON COLUMN pawl.process_conditions.conditions IS
    'Array of {"kind", "subject", "topic", "partition", "since_ms", "messages", "cause", "lasting"}. Empty: no message waits.';
COMMENT ON COLUMN pawl.process_conditions.seen_at IS 'When the process last wrote the row.';
