-- The tables and functions that make a message's effect happen once. docs/design.md gives the reasons.
-- Every object name is qualified with "pawl."; scripts/migrate replaces that schema name when another
-- one is asked for (--schema).

-- ---- the database and its consumers ----------------------------------------------------------------

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

-- Which processes of a consumer work on partitions now, and what each does with a topic's messages, so
-- that two which do different things with one topic are told. Only for warnings. Every process tells
-- its rows again and again, and takes them away at its end; docs/operations.md says how they are used.
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
    'What each live process of a consumer does with a topic, as digests; a row that is not told again for 20 s is of a process that is gone.';

-- ---- the offset register ---------------------------------------------------------------------------

-- One row is updated with every message, so nothing but the primary key is indexed, half of a page stays
-- free for HOT updates (PostgreSQL manual, "Heap-Only Tuples"), and the functions below keep the rules
-- that CHECK constraints would cost every message to check again: state is running, paused or halted;
-- halt_kind is not null while halted only.
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
    halt_offset           bigint,
    state_reason          text,
    state_since           timestamptz NOT NULL DEFAULT now(),
    attempts              integer NOT NULL DEFAULT 0,
    attempts_offset       bigint,
    base_offset           bigint NOT NULL,
    applied_count         bigint NOT NULL DEFAULT 0,
    duplicate_count       bigint NOT NULL DEFAULT 0,
    skipped_count         bigint NOT NULL DEFAULT 0,
    unchecked_count       bigint NOT NULL DEFAULT 0,
    dead_count            bigint NOT NULL DEFAULT 0,
    parked_count          bigint NOT NULL DEFAULT 0,
    last_timestamp_ms     bigint,
    updated_at            timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer_id, topic, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON COLUMN pawl.processed_kafka_offsets.last_processed_offset IS
    'Every message of the partition at or below it is applied, a duplicate, or recorded; -1: none yet.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.owner_epoch IS
    'Fencing token: raised by every acquire; only its holder may advance.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.leader_epoch IS
    'Leader epoch (KIP-320) of the record at last_processed_offset; NULL: unknown.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.halt_offset IS
    'Offset of the message that halts the partition; NULL when none does (kind position). Of no meaning unless state is halted.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.attempts IS
    'Failed attempts of the message at attempts_offset that count against it; of no meaning once it is behind.';
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
           dead_count = CASE WHEN p_offset IS NULL THEN held.dead_count ELSE 0 END,
           parked_count = CASE WHEN p_offset IS NULL THEN held.parked_count ELSE 0 END,
           -- Who resumes or moves a partition has done something about its message: it begins anew.
           attempts = 0,
           attempts_offset = NULL,
           -- A position set by hand is a statement about the topic as it is now.
           topic_id = CASE WHEN p_offset IS NULL THEN held.topic_id END,
           leader_epoch = CASE WHEN p_offset IS NULL THEN held.leader_epoch END,
           state = coalesce(p_state, held.state),
           halt_kind = CASE WHEN coalesce(p_state, held.state) = 'halted' THEN held.halt_kind END,
           state_reason = CASE WHEN p_state IS NULL THEN held.state_reason ELSE p_reason END,
           state_since = CASE WHEN p_state IS NULL THEN held.state_since ELSE clock_timestamp() END,
           updated_at = clock_timestamp()
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition;
    DELETE FROM pawl.suspects s
     WHERE s.consumer_id = p_consumer_id AND s.topic = p_topic AND s.partition = p_partition;
    INSERT INTO pawl.offset_history (consumer_id, topic, partition, action, from_offset, to_offset, reason)
    VALUES (p_consumer_id, p_topic, p_partition, p_action, held.last_processed_offset,
            coalesce(p_offset, held.last_processed_offset), p_reason);
    RETURN held.last_processed_offset;
END
$$;

-- ---- idempotency keys ------------------------------------------------------------------------------

CREATE TABLE pawl.idempotency_scopes (
    scope_id  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name      text NOT NULL UNIQUE,
    pruned_to timestamptz,
    swept_to  timestamptz
);
COMMENT ON COLUMN pawl.idempotency_scopes.pruned_to IS
    'Keys created before it may have been removed. Stored before the first of them goes; only grows.';
COMMENT ON COLUMN pawl.idempotency_scopes.swept_to IS
    'The cutoff of the last sweep that came to its end.';

-- Which topics of which consumers put keys into a scope. A row is there before the first key of its
-- source, so that nobody removes keys which a partition of that source still needs.
CREATE TABLE pawl.scope_sources (
    scope_id  integer NOT NULL REFERENCES pawl.idempotency_scopes,
    source_id integer NOT NULL REFERENCES pawl.consumer_topics (source_id),
    PRIMARY KEY (scope_id, source_id)
);

-- A key vouches for every message that was found to have it, not only for the one that claimed it: each
-- renews it that came to Kafka after created_at. So a message that is younger than pruned_to was not
-- processed if its key is not there. docs/retention.md says who relies on that.
--
-- A sweep leaves about a tenth of the table dead. Vacuum has to come after each, or the table grows by
-- what the next inserts could have reused; and not in its midst, since each vacuum reads the index.
-- Trailing empty pages stay: they are filled again, and giving them back locks claims out.
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
) WITH (
    autovacuum_vacuum_scale_factor = 0.08, autovacuum_vacuum_threshold = 10000, vacuum_truncate = false,
    toast.autovacuum_vacuum_scale_factor = 0.08, toast.autovacuum_vacuum_threshold = 10000,
    toast.vacuum_truncate = false);
COMMENT ON COLUMN pawl.idempotency_keys.source_id IS
    'Where the key was first seen: pawl.consumer_topics.source_id.';
COMMENT ON COLUMN pawl.idempotency_keys.created_at IS
    'When the key was claimed, or found again by a message that came to Kafka later than that.';

-- Which of these keys are there: their places among p_keys, from 0, and what is stored with each. By the
-- index and each key by itself, whatever the statistics say: a plan outlives them, and a table that was
-- empty a moment ago grows by thousands of rows a second.
CREATE FUNCTION pawl.stored_keys(p_scope_id integer, p_keys text[], p_with_responses boolean)
RETURNS TABLE (place bigint, payload_hash bigint, response bytea, created_ms bigint)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
BEGIN
    RETURN QUERY
        SELECT asked.place - 1, k.payload_hash, k.response, k.created_ms
          FROM unnest(p_keys) WITH ORDINALITY AS asked (key, place)
         CROSS JOIN LATERAL (SELECT i.payload_hash, CASE WHEN p_with_responses THEN i.response END AS response,
                                    floor(extract(epoch FROM i.created_at) * 1000)::bigint AS created_ms
                               FROM pawl.idempotency_keys i
                              WHERE i.scope_id = p_scope_id AND i.key = asked.key
                             OFFSET 0) k;
END
$$;
COMMENT ON FUNCTION pawl.stored_keys(integer, text[], boolean) IS
    'The idempotency keys of a scope that are stored already, asked for many messages at once.';

-- Each key once. The locks are taken in the keys' order, whatever the order of p_keys is, so that two
-- batches wait for each other instead of locking each other out. Raises when a key is gone: a removal
-- came in between, and its message is a new one.
CREATE FUNCTION pawl.renew_keys(p_scope_id integer, p_keys text[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    found_keys bigint;
BEGIN
    PERFORM FROM pawl.idempotency_keys k
      WHERE k.scope_id = p_scope_id AND k.key = ANY (p_keys)
      ORDER BY k.key COLLATE "C"
        FOR NO KEY UPDATE;
    GET DIAGNOSTICS found_keys = ROW_COUNT;
    IF found_keys <> cardinality(p_keys) THEN
        RAISE EXCEPTION 'an idempotency key was removed while it was looked at' USING ERRCODE = 'PW011';
    END IF;
    UPDATE pawl.idempotency_keys k SET created_at = clock_timestamp()
     WHERE k.scope_id = p_scope_id AND k.key = ANY (p_keys);
END
$$;
COMMENT ON FUNCTION pawl.renew_keys(integer, text[]) IS
    'A duplicate that came to Kafka later than its key''s time makes the key as young as itself.';

-- A message whose transaction travels to the server together with others claims by a statement that has
-- to raise instead of answering that it claimed nothing: what follows it is on its way already. It is
-- asked before whether the key is there, so this happens only in a race.
CREATE FUNCTION pawl.refuse_claim()
RETURNS bytea
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the idempotency key was claimed meanwhile, or the record key is parked'
        USING ERRCODE = 'PW008';
END
$$;
COMMENT ON FUNCTION pawl.refuse_claim() IS
    'Ends a pipelined transaction whose message is a duplicate or has to wait; it is processed alone then.';

-- Nobody reads the row counts of such a message before COMMIT is sent, so a statement that touches
-- another number of rows than it must has to raise.
CREATE FUNCTION pawl.refuse_rows(p_touched bigint, p_expected bigint)
RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a statement of the handler touched % rows, expect_rows demands %', p_touched, p_expected
        USING ERRCODE = 'PW009';
END
$$;
COMMENT ON FUNCTION pawl.refuse_rows(bigint, bigint) IS
    'Ends a pipelined transaction whose statement did not touch as many rows as expect_rows demands; it is processed alone then.';

-- ---- messages that are not applied -----------------------------------------------------------------

CREATE TABLE pawl.skipped_messages (
    skip_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer_id  integer NOT NULL REFERENCES pawl.consumers,
    topic        text COLLATE "C" NOT NULL,
    partition    integer NOT NULL,
    kafka_offset bigint NOT NULL,
    reason       text NOT NULL,
    record_key   bytea,
    record_value bytea,
    headers      jsonb,
    timestamp_ms bigint,
    skipped_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor        text NOT NULL DEFAULT session_user
);
COMMENT ON COLUMN pawl.skipped_messages.headers IS
    'Array of {"name": ..., "value": base64 or null}, in the producer''s order.';
CREATE INDEX skipped_messages_by_age ON pawl.skipped_messages (skipped_at);

-- docs/failures.md explains dead letters to operators.
CREATE TABLE pawl.dead_letters (
    dead_letter_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer_id     integer NOT NULL REFERENCES pawl.consumers,
    topic           text COLLATE "C" NOT NULL,
    topic_id        text,
    partition       integer NOT NULL,
    kafka_offset    bigint NOT NULL,
    leader_epoch    integer,
    timestamp_ms    bigint,
    message_digest  bytea,
    -- dead: an operator decides; parked: waits in order behind a dead one of the same record key;
    -- replayed, discarded: done.
    status          text NOT NULL CHECK (status IN ('dead', 'parked', 'replayed', 'discarded')),
    reason          text NOT NULL,
    handler         text NOT NULL,
    idempotency_key text COLLATE "C", -- as in pawl.idempotency_keys: an index finds one by the other
    sqlstate        text,
    error           text NOT NULL,
    error_detail    text,
    attempts        integer NOT NULL DEFAULT 0,
    record_key      bytea,
    record_key_hash bytea,
    record_value    bytea,
    value_bytes     bigint,
    headers         jsonb,
    -- complete: all bytes are here; truncated: the value was larger than dead_letters.max_payload;
    -- omitted: dead_letters.store_payload = false; erased: by `pawl dlq erase`.
    payload         text NOT NULL CHECK (payload IN ('complete', 'truncated', 'omitted', 'erased')),
    died_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    published_at    timestamptz,
    replays         integer NOT NULL DEFAULT 0,
    resolved_at     timestamptz,
    resolved_by     text,
    resolution      text,
    CHECK ((status IN ('dead', 'parked')) = (resolved_at IS NULL))
);
COMMENT ON COLUMN pawl.dead_letters.message_digest IS
    'SHA-256 over time, key, value and headers of the message. NULL: erased, or imported without it.';
COMMENT ON COLUMN pawl.dead_letters.error_detail IS
    'DETAIL of PostgreSQL, which may quote values of rows. Never logged unless log.error_details says so.';
COMMENT ON COLUMN pawl.dead_letters.headers IS
    'Array of {"name": ..., "value": base64 or null}, in the producer''s order.';
COMMENT ON COLUMN pawl.dead_letters.published_at IS
    'When Kafka had confirmed the letter in dead_letters.topic. NULL: not yet, or no such topic is configured.';

-- A message is dead once, however often its partition is set back; another message that has its offset
-- (a topic made anew, a log that was cut and has grown again) is another letter. The statements that
-- store letters see to that, also for letters without digest; this index only decides races between them.
CREATE UNIQUE INDEX dead_letters_unresolved
    ON pawl.dead_letters (consumer_id, topic, partition, kafka_offset, coalesce(topic_id, ''), message_digest)
    WHERE status IN ('dead', 'parked');
CREATE INDEX dead_letters_by_place ON pawl.dead_letters (consumer_id, topic, partition, kafka_offset, dead_letter_id);
CREATE INDEX dead_letters_by_record_key ON pawl.dead_letters (consumer_id, topic, record_key_hash, partition, kafka_offset)
    WHERE status IN ('dead', 'parked');
-- Whether a dead letter waits for this key: asked for every key that is removed.
CREATE INDEX dead_letters_by_idempotency_key ON pawl.dead_letters (idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX dead_letters_resolved ON pawl.dead_letters (resolved_at) WHERE resolved_at IS NOT NULL;
-- What is still to be fed into dead_letters.topic. Only letters that wait for somebody are, so the index
-- holds no more than dead_letters_unresolved does, also where no topic is configured.
CREATE INDEX dead_letters_unpublished ON pawl.dead_letters (consumer_id, dead_letter_id)
    WHERE published_at IS NULL AND status IN ('dead', 'parked');

-- A record key whose later messages wait. The consumer locks the row before it claims a message of
-- the key or parks it; whoever finds, with the row locked, that nothing waits any more deletes it. So
-- no message is parked behind nothing, and none overtakes those that wait.
CREATE TABLE pawl.parked_keys (
    consumer_id     integer NOT NULL REFERENCES pawl.consumers,
    topic           text COLLATE "C" NOT NULL,
    record_key_hash bytea NOT NULL,
    parked_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer_id, topic, record_key_hash)
);

-- One process of a group feeds dead_letters.topic at a time, by a lease as in pawl.retention_state. Two
-- at once would store letters twice in the topic.
CREATE TABLE pawl.dead_letter_feed (
    consumer_id integer PRIMARY KEY REFERENCES pawl.consumers,
    holder      text,
    lease_until timestamptz
);

-- Whether messages of this record key must wait. Locks the key's row until the transaction ends, and
-- deletes it when nothing waits: each statement here sees what was committed before it began.
CREATE FUNCTION pawl.is_parked(p_consumer_id integer, p_topic text, p_record_key bytea)
RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    hash bytea := sha256(p_record_key);
BEGIN
    PERFORM FROM pawl.parked_keys k
      WHERE k.consumer_id = p_consumer_id AND k.topic = p_topic AND k.record_key_hash = hash
        FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM FROM pawl.dead_letters d
      WHERE d.consumer_id = p_consumer_id AND d.topic = p_topic AND d.record_key_hash = hash
        AND d.status IN ('dead', 'parked')
      LIMIT 1;
    IF FOUND THEN
        RETURN true;
    END IF;
    DELETE FROM pawl.parked_keys k
     WHERE k.consumer_id = p_consumer_id AND k.topic = p_topic AND k.record_key_hash = hash;
    RETURN false;
END
$$;

-- The first unresolved letter of the same parked record key that must go before this one; NULL: it is
-- this one's turn.
CREATE FUNCTION pawl.letter_before(p_dead_letter_id bigint)
RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT d.dead_letter_id
      FROM pawl.dead_letters held
      JOIN pawl.parked_keys k
        ON k.consumer_id = held.consumer_id AND k.topic = held.topic AND k.record_key_hash = held.record_key_hash
      JOIN pawl.dead_letters d
        ON d.consumer_id = k.consumer_id AND d.topic = k.topic AND d.record_key_hash = k.record_key_hash
     WHERE held.dead_letter_id = p_dead_letter_id
       AND d.status IN ('dead', 'parked')
       AND (d.partition, d.kafka_offset) <= (held.partition, held.kafka_offset)
       AND (d.partition, d.kafka_offset, d.dead_letter_id)
           < (held.partition, held.kafka_offset, held.dead_letter_id)
     ORDER BY d.partition, d.kafka_offset, d.dead_letter_id
     LIMIT 1
$$;

-- The last step of a replay's transaction, in place of the register's advance: RAISES unless this dead
-- letter is still to be resolved, no letter of its parked record key goes before it (of one offset that
-- is the one stored first), and the transaction is the one that claimed the idempotency key.
--
-- The record key's row is written, not only locked: a claim under REPEATABLE READ or SERIALIZABLE whose
-- snapshot is older than this resolution would else get the lock, and judge by letters of the past. So
-- it fails with 40001 and begins anew.
CREATE FUNCTION pawl.resolve_dead_letter(
    p_dead_letter_id bigint, p_transaction xid8, p_status text, p_resolution text)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    held pawl.dead_letters%ROWTYPE;
    before bigint;
BEGIN
    IF p_transaction IS NOT NULL AND p_transaction IS DISTINCT FROM pg_current_xact_id_if_assigned() THEN
        RAISE EXCEPTION 'the transaction that claimed the key has ended before the dead letter was resolved'
            USING ERRCODE = 'PW003',
                  HINT = 'A handler must not send COMMIT, ROLLBACK or BEGIN; use savepoints (pqxx::subtransaction).';
    END IF;
    -- First the record key's row: a message that comes meanwhile must not be parked behind this one.
    UPDATE pawl.parked_keys k
       SET parked_at = k.parked_at
      FROM pawl.dead_letters d
     WHERE d.dead_letter_id = p_dead_letter_id
       AND k.consumer_id = d.consumer_id AND k.topic = d.topic AND k.record_key_hash = d.record_key_hash;
    SELECT * INTO held FROM pawl.dead_letters d WHERE d.dead_letter_id = p_dead_letter_id FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no dead letter %', p_dead_letter_id USING ERRCODE = 'PW005';
    ELSIF held.status NOT IN ('dead', 'parked') THEN
        RAISE EXCEPTION 'dead letter % is % already', p_dead_letter_id, held.status USING ERRCODE = 'PW005';
    END IF;
    IF p_status = 'replayed' THEN
        before := pawl.letter_before(p_dead_letter_id);
        IF before IS NOT NULL THEN
            RAISE EXCEPTION 'dead letter % waits behind %, of the same record key', p_dead_letter_id, before
                USING ERRCODE = 'PW006';
        END IF;
    END IF;
    UPDATE pawl.dead_letters d
       SET status = p_status, resolution = p_resolution, resolved_by = session_user,
           resolved_at = clock_timestamp(), replays = d.replays + (p_status = 'replayed')::integer
     WHERE d.dead_letter_id = p_dead_letter_id;
END
$$;

-- ---- messages at which processes end ---------------------------------------------------------------

-- Messages that were in hand when a process ended without letting go, and the mark of the process that
-- runs such a message alone.
CREATE TABLE pawl.suspects (
    consumer_id          integer NOT NULL REFERENCES pawl.consumers,
    topic                text COLLATE "C" NOT NULL,
    partition            integer NOT NULL,
    kafka_offset         bigint NOT NULL,
    crashes              integer NOT NULL DEFAULT 0,
    marked_by            text,
    marked_pid           integer,
    marked_backend_start timestamptz,
    marked_at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer_id, topic, partition)
);

-- Leaves the mark of p_owner and returns how many processes have ended at this message while theirs
-- stood. A mark whose session still lives is no crash: its process was only fenced. Returns NULL when
-- the partition has another owner meanwhile, whose marks are its own affair.
CREATE FUNCTION pawl.mark_suspect(
    p_consumer_id integer, p_topic text, p_partition integer, p_epoch bigint, p_offset bigint,
    p_owner text, p_pid integer, p_backend_start timestamptz, p_most integer)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    held pawl.suspects%ROWTYPE;
    counted integer := 0;
BEGIN
    -- An acquire waits for this transaction, so two owners never count the same mark.
    PERFORM FROM pawl.processed_kafka_offsets r
      WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition
        AND r.owner_epoch = p_epoch
        FOR SHARE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT * INTO held FROM pawl.suspects s
     WHERE s.consumer_id = p_consumer_id AND s.topic = p_topic AND s.partition = p_partition;
    IF FOUND AND held.kafka_offset = p_offset THEN
        counted := held.crashes;
        IF held.marked_by <> p_owner AND NOT EXISTS (
            SELECT FROM pg_stat_activity a
             WHERE a.pid = held.marked_pid
               AND coalesce(a.backend_start = held.marked_backend_start, true)) THEN
            counted := counted + 1;
        END IF;
    END IF;
    INSERT INTO pawl.suspects AS s (consumer_id, topic, partition, kafka_offset, crashes, marked_by,
                                    marked_pid, marked_backend_start)
    VALUES (p_consumer_id, p_topic, p_partition, p_offset, counted,
            CASE WHEN counted < p_most THEN p_owner END, p_pid, p_backend_start)
    ON CONFLICT (consumer_id, topic, partition) DO UPDATE
       SET kafka_offset = excluded.kafka_offset, crashes = excluded.crashes,
           marked_by = excluded.marked_by, marked_pid = excluded.marked_pid,
           marked_backend_start = excluded.marked_backend_start, marked_at = excluded.marked_at;
    RETURN counted;
END
$$;

-- ---- retention: idempotency keys, resolved dead letters, skipped messages --------------------------

-- One process of a group removes at a time; docs/retention.md has the rule. A lease instead of an
-- advisory lock, since a session lock does not work through poolers; nothing breaks if two work at once,
-- they only share the work.
CREATE TABLE pawl.retention_state (
    consumer_id       integer PRIMARY KEY REFERENCES pawl.consumers,
    holder            text,
    lease_until       timestamptz,
    records_pruned_to timestamptz,
    swept_at          timestamptz,
    removed_keys      bigint NOT NULL DEFAULT 0
);
COMMENT ON COLUMN pawl.retention_state.records_pruned_to IS
    'Resolved dead letters and skipped messages of before may have been removed.';

-- A record's time may be anything: producers write nanoseconds for milliseconds. Before 1970 counts as
-- 1970, older than anything that matters; what no calendar of four-digit years has is NULL.
CREATE FUNCTION pawl.record_time(p_timestamp_ms bigint)
RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_timestamp_ms < 253402300800000
                THEN to_timestamp(greatest(p_timestamp_ms, 0) / 1000.0) END
$$;

-- Up to when keys of a scope may go: p_retention_ms before the oldest message that may still come. Of
-- a partition at its log's end that is one appended after p_asked_at, of another one its next message,
-- which is no older than the last processed one. p_ends are the logs' ends as Kafka told them AFTER
-- p_asked_at; a partition that is not among them, stands behind the end, or whose topic was made anew,
-- counts as not at its end. A dead letter whose key is unknown is a message that may still come.
--
-- With p_store the scope's row is locked before the register is read, and pruned_to is stored: an
-- operator who sets a partition back (pawl.require_unpruned) does so before this reads, and holds the
-- cutoff back, or after it is stored, and is asked for --force.
--
-- cutoff NULL: nothing may go. held_by: what the cutoff depends on, NULL if every log is at its end.
-- unusable_time: a partition, not at its end, whose last record says a time that cannot be (its
-- processing counts instead); NULL if there is none.
CREATE FUNCTION pawl.prune_cutoff(
    p_scope_id integer, p_retention_ms bigint, p_asked_at timestamptz, p_store boolean,
    p_sources integer[], p_partitions integer[], p_ends bigint[], p_topic_ids text[])
RETURNS TABLE (cutoff timestamptz, held_by text, unusable_time text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    waiting record;
    reference timestamptz := p_asked_at;
    until timestamptz;
BEGIN
    IF p_store THEN
        PERFORM FROM pawl.idempotency_scopes s WHERE s.scope_id = p_scope_id FOR NO KEY UPDATE;
    END IF;
    SELECT w.since, w.what, min(w.what) FILTER (WHERE w.unusable) OVER () AS unusable INTO waiting
      FROM (
        SELECT CASE WHEN r.last_timestamp_ms IS NOT NULL
                    THEN least(pawl.record_time(r.last_timestamp_ms), r.updated_at) END AS since,
               format('%s [%s] of %s/%s', t.topic, partition, c.cluster, c.group_id) AS what,
               r.last_timestamp_ms IS NOT NULL AND pawl.record_time(r.last_timestamp_ms) IS NULL AS unusable
          FROM pawl.scope_sources u
          JOIN pawl.consumer_topics t USING (source_id)
          JOIN pawl.consumers c USING (consumer_id)
         CROSS JOIN LATERAL (
               SELECT partition, o.last_processed_offset, o.last_timestamp_ms, o.updated_at,
                      CASE WHEN e.topic_id IN ('', coalesce(o.topic_id, e.topic_id)) THEN e.log_end END AS log_end
                 FROM (SELECT * FROM pawl.processed_kafka_offsets o
                        WHERE o.consumer_id = t.consumer_id AND o.topic = t.topic) o
                 FULL JOIN (SELECT * FROM unnest(p_sources, p_partitions, p_ends, p_topic_ids)
                                          AS e (source_id, partition, log_end, topic_id)
                             WHERE e.source_id = t.source_id) e USING (partition)) r
         WHERE u.scope_id = p_scope_id
           AND (coalesce(r.last_processed_offset, -1) + 1 = r.log_end) IS NOT TRUE
        UNION ALL
        SELECT least(pawl.record_time(d.timestamp_ms), d.died_at),
               format('dead letter %s, whose key is unknown', d.dead_letter_id),
               d.timestamp_ms IS NOT NULL AND pawl.record_time(d.timestamp_ms) IS NULL
          FROM pawl.scope_sources u
          JOIN pawl.consumer_topics t USING (source_id)
          JOIN pawl.dead_letters d USING (consumer_id, topic)
         WHERE u.scope_id = p_scope_id AND d.status IN ('dead', 'parked') AND d.idempotency_key IS NULL
      ) w
     ORDER BY w.since NULLS FIRST
     LIMIT 1;
    IF FOUND THEN
        IF waiting.since IS NULL THEN
            RETURN QUERY SELECT NULL::timestamptz, waiting.what || ', which has messages and processed none yet',
                                waiting.unusable;
            RETURN;
        END IF;
        reference := least(reference, waiting.since);
    END IF;
    until := date_trunc('milliseconds', reference - make_interval(secs => p_retention_ms / 1000.0));
    IF p_store THEN
        UPDATE pawl.idempotency_scopes s
           SET pruned_to = until
         WHERE s.scope_id = p_scope_id AND (s.pruned_to IS NULL OR s.pruned_to < until);
    END IF;
    RETURN QUERY SELECT until, CASE WHEN waiting.since < p_asked_at THEN waiting.what END, waiting.unusable;
END
$$;

-- Raises when keys of this topic were removed beyond what the operator has seen, in the transaction
-- that sets a partition back. Locks the scopes against prune_cutoff() until that has committed.
CREATE FUNCTION pawl.require_unpruned(p_consumer_id integer, p_topic text, p_seen_ms bigint)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM pawl.idempotency_scopes s
       JOIN pawl.scope_sources u USING (scope_id)
       JOIN pawl.consumer_topics t USING (source_id)
      WHERE t.consumer_id = p_consumer_id AND t.topic = p_topic
      ORDER BY s.scope_id
        FOR SHARE OF s;
    PERFORM FROM pawl.idempotency_scopes s
       JOIN pawl.scope_sources u USING (scope_id)
       JOIN pawl.consumer_topics t USING (source_id)
      WHERE t.consumer_id = p_consumer_id AND t.topic = p_topic
        AND s.pruned_to > coalesce(to_timestamp(p_seen_ms / 1000.0), '-infinity');
    IF FOUND THEN
        RAISE EXCEPTION 'idempotency keys of % were removed meanwhile', p_topic
            USING ERRCODE = 'PW010', HINT = 'Repeat the command.';
    END IF;
END
$$;
