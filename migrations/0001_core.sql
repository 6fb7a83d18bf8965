-- The tables that make a message's effect happen once: consumers, the offset register,
-- idempotency keys, and the records of what an operator or a policy did.
-- docs/design.md gives the reasons. Every object name is qualified with "pawl."; scripts/migrate
-- replaces that schema name when another one is asked for (--schema).

CREATE TABLE pawl.database_identity (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    database_id uuid NOT NULL DEFAULT gen_random_uuid(),
    created_at  timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE pawl.database_identity IS
    'Names this database in the metadata of the offsets committed to Kafka, so that a wrong or lost database is noticed.';
INSERT INTO pawl.database_identity DEFAULT VALUES;

CREATE TABLE pawl.consumers (
    consumer_id      integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster          text NOT NULL,
    group_id         text NOT NULL,
    kafka_cluster_id text,
    created_at       timestamptz NOT NULL DEFAULT now(),
    UNIQUE (cluster, group_id)
);
COMMENT ON COLUMN pawl.consumers.kafka_cluster_id IS
    'The Kafka cluster seen first under this name; another one halts the consumer.';

CREATE TABLE pawl.consumer_topics (
    source_id        integer GENERATED ALWAYS AS IDENTITY UNIQUE,
    consumer_id      integer NOT NULL REFERENCES pawl.consumers,
    topic            text COLLATE "C" NOT NULL,
    partitions       integer NOT NULL CHECK (partitions > 0),
    start_policy     text NOT NULL,
    first_contact_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer_id, topic)
);
COMMENT ON TABLE pawl.consumer_topics IS
    'Topics whose start positions are resolved, for all partitions at once; partitions that appear later start at 0.';

-- The offset register. One row is updated with every message, so nothing but the primary key is
-- indexed, most of a page stays free for HOT updates (PostgreSQL manual, "Heap-Only Tuples"), and the
-- functions below keep the rules that CHECK constraints would cost every message to check again:
-- state is running, paused or halted; halt_kind is not null while halted only.
CREATE TABLE pawl.processed_kafka_offsets (
    consumer_id           integer NOT NULL REFERENCES pawl.consumers,
    topic                 text COLLATE "C" NOT NULL,
    partition             integer NOT NULL,
    last_processed_offset bigint NOT NULL,
    owner_epoch           bigint NOT NULL DEFAULT 0,
    owner                 text,
    owner_pid             integer,
    owner_backend_start   timestamptz,
    released              boolean NOT NULL DEFAULT true,
    acquired_at           timestamptz,
    topic_id              text,
    leader_epoch          integer,
    state                 text NOT NULL DEFAULT 'running',
    halt_kind             text,
    state_reason          text,
    state_since           timestamptz NOT NULL DEFAULT now(),
    base_offset           bigint NOT NULL,
    applied_count         bigint NOT NULL DEFAULT 0,
    duplicate_count       bigint NOT NULL DEFAULT 0,
    skipped_count         bigint NOT NULL DEFAULT 0,
    unchecked_count       bigint NOT NULL DEFAULT 0,
    last_timestamp_ms     bigint,
    updated_at            timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer_id, topic, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON COLUMN pawl.processed_kafka_offsets.last_processed_offset IS
    'Every message of the partition at or below it is applied, a duplicate, or recorded; -1: none yet.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.owner_epoch IS
    'Fencing token: raised by every acquire; only its holder may advance.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.base_offset IS
    'The offset at which the counters began to count.';

CREATE TABLE pawl.offset_history (
    history_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer_id integer NOT NULL REFERENCES pawl.consumers,
    topic       text COLLATE "C" NOT NULL,
    partition   integer NOT NULL,
    happened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    action      text NOT NULL,
    from_offset bigint,
    to_offset   bigint,
    reason      text,
    actor       text NOT NULL DEFAULT session_user
);
COMMENT ON TABLE pawl.offset_history IS
    'What changed a position or a state other than processing a message: operators, halts, first contact.';

CREATE TABLE pawl.skipped_messages (
    consumer_id   integer NOT NULL REFERENCES pawl.consumers,
    topic         text COLLATE "C" NOT NULL,
    partition     integer NOT NULL,
    kafka_offset  bigint NOT NULL,
    reason        text NOT NULL,
    record_key    bytea,
    record_value  bytea,
    headers       jsonb,
    timestamp_ms  bigint,
    skipped_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor         text NOT NULL DEFAULT session_user,
    skip_id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY
);
COMMENT ON COLUMN pawl.skipped_messages.headers IS
    'Array of {"name": ..., "value": base64 or null}, in the producer''s order.';

CREATE TABLE pawl.idempotency_scopes (
    scope_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name     text NOT NULL UNIQUE
);

CREATE TABLE pawl.idempotency_keys (
    scope_id     integer NOT NULL,
    key          text COLLATE "C" NOT NULL,
    payload_hash bigint NOT NULL,
    source_id    integer NOT NULL,
    partition    integer NOT NULL,
    kafka_offset bigint NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    response     bytea,
    PRIMARY KEY (scope_id, key)
);
COMMENT ON COLUMN pawl.idempotency_keys.source_id IS
    'Where the key was first seen: pawl.consumer_topics.source_id.';

-- Takes the partition for a new owner. The row lock waits for a commit of the old owner that is in
-- flight, so what is returned is definitive; the raised epoch makes every later advance of the old
-- owner fail. Returns nothing when the partition has no row yet (first contact).
CREATE FUNCTION pawl.acquire(
    p_consumer_id integer, p_topic text, p_partition integer,
    p_owner text, p_owner_pid integer, p_owner_backend_start timestamptz)
RETURNS TABLE (
    epoch bigint, stored_offset bigint, state text, halt_kind text, state_reason text,
    topic_id text, leader_epoch integer, released boolean,
    previous_owner text, previous_pid integer, previous_backend_start timestamptz)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    held pawl.processed_kafka_offsets%ROWTYPE;
BEGIN
    SELECT * INTO held
      FROM pawl.processed_kafka_offsets r
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    UPDATE pawl.processed_kafka_offsets r
       SET owner_epoch = held.owner_epoch + 1,
           owner = p_owner,
           owner_pid = p_owner_pid,
           owner_backend_start = p_owner_backend_start,
           released = false,
           acquired_at = clock_timestamp()
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition;
    RETURN QUERY SELECT held.owner_epoch + 1, held.last_processed_offset, held.state, held.halt_kind,
                        held.state_reason, held.topic_id, held.leader_epoch, held.released,
                        held.owner, held.owner_pid, held.owner_backend_start;
END
$$;

-- Says why the last step of a message's transaction must not move the row, always by raising: the
-- statement that pawl sends there (framework/ledger/advance_text.cpp) calls it unless exactly this
-- owner moves exactly from the offset it believes in, inside the transaction that claimed the key.
-- Raising matters: an "UPDATE 0" would not stop the COMMIT that was sent behind it.
CREATE FUNCTION pawl.refuse_advance(
    held pawl.processed_kafka_offsets, p_epoch bigint, p_previous bigint, p_new bigint, p_transaction xid8)
RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    IF p_transaction IS NOT NULL AND p_transaction IS DISTINCT FROM pg_current_xact_id_if_assigned() THEN
        RAISE EXCEPTION 'the transaction that claimed the key has ended before the offset was stored'
            USING ERRCODE = 'PW003',
                  HINT = 'A handler must not send COMMIT, ROLLBACK or BEGIN; use savepoints (pqxx::subtransaction).';
    ELSIF held.owner_epoch <> p_epoch THEN
        RAISE EXCEPTION 'fenced: % [%] has owner epoch %, and ours is %: acquired by % or changed by an operator',
                        held.topic, held.partition, held.owner_epoch, p_epoch, coalesce(held.owner, 'nobody')
            USING ERRCODE = 'PW001';
    ELSE
        RAISE EXCEPTION 'out of order: % [%] stands at offset %, not %, and cannot move to %',
                        held.topic, held.partition, held.last_processed_offset, p_previous, p_new
            USING ERRCODE = 'PW002';
    END IF;
END
$$;

-- A row that is owned must not vanish: its owner's next message would find nothing to compare with.
CREATE FUNCTION pawl.keep_owned_rows()
RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        PERFORM FROM pawl.processed_kafka_offsets r WHERE NOT r.released;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    ELSIF OLD.released THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'rows of the offset register are owned and cannot be removed'
        USING ERRCODE = 'PW007',
              HINT = 'Stop the consumer. If its processes died, set released = true where you know it.';
END
$$;
CREATE TRIGGER keep_owned_rows BEFORE DELETE ON pawl.processed_kafka_offsets
    FOR EACH ROW EXECUTE FUNCTION pawl.keep_owned_rows();
CREATE TRIGGER keep_owned_rows_truncate BEFORE TRUNCATE ON pawl.processed_kafka_offsets
    FOR EACH STATEMENT EXECUTE FUNCTION pawl.keep_owned_rows();

-- Marks a clean hand-over. Changes nothing when somebody else has acquired meanwhile.
CREATE FUNCTION pawl.release(p_consumer_id integer, p_topic text, p_partition integer, p_epoch bigint)
RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pawl.processed_kafka_offsets r
       SET released = true, owner_pid = NULL, owner_backend_start = NULL
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition
       AND r.owner_epoch = p_epoch;
    RETURN FOUND;
END
$$;

-- Stores that the owner stopped the partition, and why. The epoch is compared, not raised: the
-- owner keeps the partition and waits for an operator.
CREATE FUNCTION pawl.halt(
    p_consumer_id integer, p_topic text, p_partition integer, p_epoch bigint, p_kind text, p_reason text)
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    held pawl.processed_kafka_offsets%ROWTYPE;
BEGIN
    SELECT * INTO held
      FROM pawl.processed_kafka_offsets r
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition
       AND r.owner_epoch = p_epoch
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- Retries and restarts meet the same halt again; it happened once.
    IF held.state = 'halted' AND held.state_reason = p_reason THEN
        RETURN true;
    END IF;
    UPDATE pawl.processed_kafka_offsets r
       SET state = 'halted', halt_kind = p_kind, state_reason = p_reason,
           state_since = CASE WHEN held.state = 'halted' THEN held.state_since ELSE clock_timestamp() END
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition;
    INSERT INTO pawl.offset_history (consumer_id, topic, partition, action, from_offset, to_offset, reason)
    VALUES (p_consumer_id, p_topic, p_partition, 'halt', held.last_processed_offset,
            held.last_processed_offset, p_reason);
    RETURN true;
END
$$;

-- An operator's change is an acquire: it raises the epoch, so the running owner is fenced, acquires
-- again and finds the new position or state. p_offset NULL keeps the position, p_state NULL the state.
-- The owner stays in the row: it is how the owner recognises its partitions when it looks for commands.
CREATE FUNCTION pawl.operator_change(
    p_consumer_id integer, p_topic text, p_partition integer,
    p_offset bigint, p_state text, p_action text, p_reason text)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    held pawl.processed_kafka_offsets%ROWTYPE;
BEGIN
    IF p_state NOT IN ('running', 'paused') THEN
        RAISE EXCEPTION 'an operator makes a partition running or paused, not %', p_state
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Only its owner halts it (pawl.halt).';
    END IF;
    SELECT * INTO held
      FROM pawl.processed_kafka_offsets r
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no register row for % [%]', p_topic, p_partition USING ERRCODE = 'PW004';
    END IF;
    UPDATE pawl.processed_kafka_offsets r
       SET owner_epoch = held.owner_epoch + 1,
           last_processed_offset = coalesce(p_offset, held.last_processed_offset),
           base_offset = CASE WHEN p_offset IS NULL THEN held.base_offset ELSE p_offset END,
           applied_count = CASE WHEN p_offset IS NULL THEN held.applied_count ELSE 0 END,
           duplicate_count = CASE WHEN p_offset IS NULL THEN held.duplicate_count ELSE 0 END,
           skipped_count = CASE WHEN p_offset IS NULL THEN held.skipped_count ELSE 0 END,
           unchecked_count = CASE WHEN p_offset IS NULL THEN held.unchecked_count ELSE 0 END,
           -- A position set by hand is a statement about the topic as it is now.
           topic_id = CASE WHEN p_offset IS NULL THEN held.topic_id END,
           leader_epoch = CASE WHEN p_offset IS NULL THEN held.leader_epoch END,
           state = coalesce(p_state, held.state),
           halt_kind = CASE WHEN coalesce(p_state, held.state) = 'halted' THEN held.halt_kind END,
           state_reason = CASE WHEN p_state IS NULL THEN held.state_reason ELSE p_reason END,
           state_since = CASE WHEN p_state IS NULL THEN held.state_since ELSE clock_timestamp() END,
           updated_at = clock_timestamp()
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition;
    INSERT INTO pawl.offset_history (consumer_id, topic, partition, action, from_offset, to_offset, reason)
    VALUES (p_consumer_id, p_topic, p_partition, p_action, held.last_processed_offset,
            coalesce(p_offset, held.last_processed_offset), p_reason);
    RETURN held.last_processed_offset;
END
$$;
