-- Messages that are not applied: skipped messages, dead letters, and parked messages (docs/failures.md).

-- ---- skipped messages -------------------------------------------------------------------------------------

CREATE TABLE pawl.skipped_messages (
    skip_id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer_id     integer NOT NULL REFERENCES pawl.consumers,
    topic           text COLLATE "C" NOT NULL,
    partition       integer NOT NULL,
    kafka_offset    bigint NOT NULL,
    reason          text NOT NULL,
    record_key      bytea,
    record_value    bytea,
    headers         jsonb,
    timestamp_ms    bigint,
    skipped_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor           text NOT NULL DEFAULT session_user,
    halt_kind       text,
    halt_code       text,
    halt_cause      text,
    halt_parameters jsonb
);
COMMENT ON TABLE pawl.skipped_messages IS
    'Messages that an operator or a handler skipped. Show them with `pawl skipped list`.';
COMMENT ON COLUMN pawl.skipped_messages.skip_id IS 'Number of the row, ascending.';
COMMENT ON COLUMN pawl.skipped_messages.consumer_id IS 'The consumer (pawl.consumers).';
COMMENT ON COLUMN pawl.skipped_messages.topic IS 'The topic.';
COMMENT ON COLUMN pawl.skipped_messages.partition IS 'The partition.';
COMMENT ON COLUMN pawl.skipped_messages.kafka_offset IS 'Offset of the message.';
COMMENT ON COLUMN pawl.skipped_messages.reason IS
    'Why the message was skipped: the reason of the handler or of the operator.';
COMMENT ON COLUMN pawl.skipped_messages.record_key IS 'Key of the record. NULL: none, or not stored.';
COMMENT ON COLUMN pawl.skipped_messages.record_value IS 'Value of the record. NULL: none, or not stored.';
COMMENT ON COLUMN pawl.skipped_messages.headers IS
    'Array of {"name": ..., "value": base64 or null} in the producer''s order; a name that is not UTF-8 is in "name_base64". JSON null: unreadable. NULL: not stored.';
COMMENT ON COLUMN pawl.skipped_messages.timestamp_ms IS 'Timestamp of the record, in Unix milliseconds.';
COMMENT ON COLUMN pawl.skipped_messages.skipped_at IS 'When the message was skipped.';
COMMENT ON COLUMN pawl.skipped_messages.actor IS 'Database role that skipped the message.';
COMMENT ON COLUMN pawl.skipped_messages.halt_kind IS
    'If an operator skipped the message of a halt: kind of the halt, as in processed_kafka_offsets. NULL: there was no halt.';
COMMENT ON COLUMN pawl.skipped_messages.halt_code IS 'Code of that halt.';
COMMENT ON COLUMN pawl.skipped_messages.halt_cause IS 'Cause of that halt.';
COMMENT ON COLUMN pawl.skipped_messages.halt_parameters IS 'Parameters of that halt.';

-- Retention removes the oldest rows; `audit` reads them partition by partition.
CREATE INDEX skipped_messages_by_age ON pawl.skipped_messages (skipped_at);
CREATE INDEX skipped_messages_by_offset ON pawl.skipped_messages (consumer_id, topic, partition, kafka_offset);

-- ---- dead letters -----------------------------------------------------------------------------------------

CREATE TABLE pawl.dead_letters (
    dead_letter_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer_id         integer NOT NULL REFERENCES pawl.consumers,
    topic               text COLLATE "C" NOT NULL,
    topic_id            text,
    partition           integer NOT NULL,
    kafka_offset        bigint NOT NULL,
    leader_epoch        integer,
    timestamp_ms        bigint,
    message_digest      bytea,
    status              text NOT NULL CHECK (status IN ('dead', 'parked', 'replayed', 'discarded')),
    reason              text NOT NULL,
    handler             text NOT NULL,
    idempotency_key     text COLLATE "C",
    sqlstate            text,
    statement           text,
    error               text NOT NULL,
    error_detail        text,
    attempts            integer NOT NULL DEFAULT 0,
    record_key          bytea,
    record_key_hash     bytea,
    record_value        bytea,
    value_bytes         bigint,
    headers             jsonb,
    payload             text NOT NULL CHECK (payload IN ('complete', 'truncated', 'omitted', 'erased')),
    died_at             timestamptz NOT NULL DEFAULT clock_timestamp(),
    published_at        timestamptz,
    due_at              timestamptz,
    retries             integer NOT NULL DEFAULT 0,
    tried_alone         boolean,
    tried_pid           integer,
    tried_backend_start timestamptz,
    replays             integer NOT NULL DEFAULT 0,
    resolved_at         timestamptz,
    resolved_by         text,
    resolution          text,
    CHECK ((status IN ('dead', 'parked')) = (resolved_at IS NULL))
);
COMMENT ON TABLE pawl.dead_letters IS
    'Messages that could not be applied, and messages parked after them. Show them with `pawl dlq list`, resolve them with `pawl dlq replay` or `discard`.';
COMMENT ON COLUMN pawl.dead_letters.dead_letter_id IS 'Number of the dead letter, ascending.';
COMMENT ON COLUMN pawl.dead_letters.consumer_id IS 'The consumer (pawl.consumers).';
COMMENT ON COLUMN pawl.dead_letters.topic IS 'The topic.';
COMMENT ON COLUMN pawl.dead_letters.topic_id IS 'ID of the topic in Kafka. NULL: unknown.';
COMMENT ON COLUMN pawl.dead_letters.partition IS 'The partition.';
COMMENT ON COLUMN pawl.dead_letters.kafka_offset IS 'Offset of the message.';
COMMENT ON COLUMN pawl.dead_letters.leader_epoch IS 'Leader epoch (KIP-320) of the record. NULL: unknown.';
COMMENT ON COLUMN pawl.dead_letters.timestamp_ms IS 'Timestamp of the record, in Unix milliseconds.';
COMMENT ON COLUMN pawl.dead_letters.message_digest IS
    'SHA-256 of timestamp, key, value, and headers of the message. NULL: erased, or imported without it.';
COMMENT ON COLUMN pawl.dead_letters.status IS
    'dead: unresolved; with due_at it is scheduled for retry. parked: waits for an earlier dead letter of its record key. replayed or discarded: resolved.';
COMMENT ON COLUMN pawl.dead_letters.reason IS
    'Class of the failure: error, permanent, undecodable, crash, parked, and others.';
COMMENT ON COLUMN pawl.dead_letters.handler IS 'Handler of the message. Empty: no handler matched.';
COMMENT ON COLUMN pawl.dead_letters.idempotency_key IS
    'Idempotency key of the message. NULL: unknown. The dead letter does not claim it.';
COMMENT ON COLUMN pawl.dead_letters.sqlstate IS
    'SQLSTATE of the last error. NULL: the error did not come from PostgreSQL.';
COMMENT ON COLUMN pawl.dead_letters.statement IS
    'Statement of the handler that failed: sql[0], response, or function; in C++ statements[0] or pawl.publish. NULL: none, or unknown.';
COMMENT ON COLUMN pawl.dead_letters.error IS 'The last error, at most 8,192 characters. Of a message of PostgreSQL at most 200, without values of rows.';
COMMENT ON COLUMN pawl.dead_letters.error_detail IS
    'DETAIL of PostgreSQL, which may quote values of rows. pawl logs it only if log.error_details is set.';
COMMENT ON COLUMN pawl.dead_letters.attempts IS 'Attempts until the message became a dead letter.';
COMMENT ON COLUMN pawl.dead_letters.record_key IS 'Key of the record. NULL: none, or not stored.';
COMMENT ON COLUMN pawl.dead_letters.record_key_hash IS 'SHA-256 of the record''s key. NULL: the record has no key.';
COMMENT ON COLUMN pawl.dead_letters.record_value IS 'Value of the record, as far as it is stored (payload).';
COMMENT ON COLUMN pawl.dead_letters.value_bytes IS
    'Size of the record''s value in bytes. NULL: the record has no value.';
COMMENT ON COLUMN pawl.dead_letters.headers IS
    'Array of {"name": ..., "value": base64 or null} in the producer''s order; a name that is not UTF-8 is in "name_base64". JSON null: unreadable, so no replay is possible. NULL: not stored.';
COMMENT ON COLUMN pawl.dead_letters.payload IS
    'How much of the record is stored: complete, truncated, omitted, or erased.';
COMMENT ON COLUMN pawl.dead_letters.died_at IS 'When the message became a dead letter, or failed last.';
COMMENT ON COLUMN pawl.dead_letters.published_at IS
    'When Kafka confirmed the dead letter in dead_letters.topic. NULL: not yet, or no such topic is configured.';
COMMENT ON COLUMN pawl.dead_letters.due_at IS
    'When an unresolved dead letter is retried. infinity: once earlier dead letters of its record key are resolved. NULL: only an operator replays it.';
COMMENT ON COLUMN pawl.dead_letters.retries IS 'Number of delayed retries, including one in progress.';
COMMENT ON COLUMN pawl.dead_letters.tried_alone IS
    'Whether the delayed retry in progress runs alone in its process, or is to run alone again. NULL: no delayed retry is in progress.';
COMMENT ON COLUMN pawl.dead_letters.tried_pid IS
    'Server process of the session that started the delayed retry; without it, that process has ended. NULL: started through a pooler, or given back.';
COMMENT ON COLUMN pawl.dead_letters.tried_backend_start IS
    'backend_start of that session, because server process IDs are reused.';
COMMENT ON COLUMN pawl.dead_letters.replays IS 'Replays by an operator or a delayed retry, also those that failed.';
COMMENT ON COLUMN pawl.dead_letters.resolved_at IS 'When it was replayed or discarded. NULL: unresolved.';
COMMENT ON COLUMN pawl.dead_letters.resolved_by IS 'Database role that resolved it.';
COMMENT ON COLUMN pawl.dead_letters.resolution IS
    'How it was resolved: the result of the replay, the reason of the discard, or erased. NULL: unresolved.';

-- A message has one unresolved dead letter, however often its partition is set back. Another message at the same offset (a
-- topic that was created again, a log that was truncated) is another dead letter. pawl.store_dead_letter does this, also for
-- rows without a digest; this index decides races only.
CREATE UNIQUE INDEX dead_letters_unresolved
    ON pawl.dead_letters (consumer_id, topic, partition, kafka_offset, coalesce(topic_id, ''), message_digest)
    WHERE status IN ('dead', 'parked');
CREATE INDEX dead_letters_by_offset ON pawl.dead_letters (consumer_id, topic, partition, kafka_offset, dead_letter_id);
CREATE INDEX dead_letters_resolved ON pawl.dead_letters (resolved_at) WHERE resolved_at IS NOT NULL;
-- Whether a dead letter needs this key, for each key that retention removes.
CREATE INDEX dead_letters_by_idempotency_key ON pawl.dead_letters (idempotency_key) WHERE idempotency_key IS NOT NULL;
-- Dead letters that hold back retention: the oldest one of a topic is read for each scope and pass.
CREATE INDEX dead_letters_without_key ON pawl.dead_letters (consumer_id, topic)
    WHERE idempotency_key IS NULL AND status IN ('dead', 'parked');
-- Dead letters to publish to dead_letters.topic. Only unresolved ones are, so the index is not larger than
-- dead_letters_unresolved, also without such a topic.
CREATE INDEX dead_letters_unpublished ON pawl.dead_letters (consumer_id, dead_letter_id)
    WHERE published_at IS NULL AND status IN ('dead', 'parked');
CREATE INDEX dead_letters_due ON pawl.dead_letters (consumer_id, topic, partition, due_at)
    WHERE due_at IS NOT NULL AND status IN ('dead', 'parked');
-- For pawl.first_dead_letter, which reads one entry of each.
CREATE INDEX dead_letters_by_record_key
    ON pawl.dead_letters (consumer_id, topic, record_key_hash, partition, kafka_offset, dead_letter_id)
    WHERE status IN ('dead', 'parked');
CREATE INDEX dead_letters_by_record_key_age ON pawl.dead_letters (consumer_id, topic, record_key_hash, dead_letter_id)
    WHERE status IN ('dead', 'parked');

-- The consumer locks the row before it claims or parks a message of the key. A session that finds, under this lock, that no
-- dead letter of the key is unresolved deletes the row. So no message is parked without a reason, and none overtakes the
-- parked ones.
CREATE TABLE pawl.parked_keys (
    consumer_id     integer NOT NULL REFERENCES pawl.consumers,
    topic           text COLLATE "C" NOT NULL,
    record_key_hash bytea NOT NULL,
    parked_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer_id, topic, record_key_hash)
);
COMMENT ON TABLE pawl.parked_keys IS
    'Record keys whose later messages are parked until their dead letters are resolved.';
COMMENT ON COLUMN pawl.parked_keys.consumer_id IS 'The consumer (pawl.consumers).';
COMMENT ON COLUMN pawl.parked_keys.topic IS 'The topic.';
COMMENT ON COLUMN pawl.parked_keys.record_key_hash IS 'SHA-256 of the record key.';
COMMENT ON COLUMN pawl.parked_keys.parked_at IS 'When the first message of the key became a dead letter.';

CREATE TABLE pawl.dead_letter_feed (
    consumer_id integer PRIMARY KEY REFERENCES pawl.consumers,
    holder      text,
    lease_until timestamptz
);
COMMENT ON TABLE pawl.dead_letter_feed IS
    'Lease on publishing to dead_letters.topic: one process of a consumer publishes at a time, so that no dead letter is published twice.';
COMMENT ON COLUMN pawl.dead_letter_feed.consumer_id IS 'The consumer (pawl.consumers).';
COMMENT ON COLUMN pawl.dead_letter_feed.holder IS 'Process that holds the lease. NULL: none.';
COMMENT ON COLUMN pawl.dead_letter_feed.lease_until IS 'When the lease expires.';

-- ---- the order of dead letters ----------------------------------------------------------------------------

-- Statements that run per message or periodically on a table that grows use an index, whatever the statistics say: a plan
-- outlives the statistics that it was made with, and a plan for an empty table reads the whole table later. So these
-- statements are functions with their own settings. Each row comparison leaves only one index with the required order. A
-- dead letter with a known number is not searched by the conditions of a partial index, because a small one would be read.

-- The dead letter of a record key that must be resolved next. NULL: none of this key is unresolved. Partitions can be added
-- to a topic, and then later messages of a key are in another partition. So partitions are ordered by their oldest unresolved
-- dead letter, and dead letters of one partition by offset. The row comparisons are not equalities, because an equality
-- would let the planner walk another index past all resolved dead letters.
CREATE FUNCTION pawl.first_dead_letter(p_consumer_id integer, p_topic text, p_record_key_hash bytea)
RETURNS bigint
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $$
DECLARE
    oldest record;
    first record;
BEGIN
    SELECT d.record_key_hash, d.partition INTO oldest
      FROM pawl.dead_letters d
     WHERE d.consumer_id = p_consumer_id AND d.topic = p_topic AND d.status IN ('dead', 'parked')
       AND (d.record_key_hash, d.dead_letter_id) >= (p_record_key_hash, 0)
     ORDER BY d.record_key_hash, d.dead_letter_id LIMIT 1;
    IF oldest.record_key_hash IS DISTINCT FROM p_record_key_hash THEN
        RETURN NULL;
    END IF;
    SELECT d.dead_letter_id INTO first
      FROM pawl.dead_letters d
     WHERE d.consumer_id = p_consumer_id AND d.topic = p_topic AND d.status IN ('dead', 'parked')
       AND (d.record_key_hash, d.partition) >= (p_record_key_hash, oldest.partition)
     ORDER BY d.record_key_hash, d.partition, d.kafka_offset, d.dead_letter_id LIMIT 1;
    RETURN first.dead_letter_id;
END
$$;
COMMENT ON FUNCTION pawl.first_dead_letter(integer, text, bytea) IS
    'The unresolved dead letter of a record key that is resolved next, by SHA-256 of the key.';

-- The dead letter that must be resolved before this one. NULL: this one is next, it is resolved, or its record key is not
-- parked. One table after the other: a join could start at an index that has the number among other columns, and read all.
CREATE FUNCTION pawl.dead_letter_before(p_dead_letter_id bigint)
RETURNS bigint
LANGUAGE plpgsql STABLE
SET enable_seqscan = off AS $$
DECLARE
    held record;
BEGIN
    SELECT d.consumer_id, d.topic, d.record_key_hash, d.status INTO held
      FROM pawl.dead_letters d WHERE d.dead_letter_id = p_dead_letter_id;
    IF held.status IN ('dead', 'parked') THEN
        PERFORM FROM pawl.parked_keys k
          WHERE k.consumer_id = held.consumer_id AND k.topic = held.topic AND k.record_key_hash = held.record_key_hash;
        IF FOUND THEN
            RETURN nullif(pawl.first_dead_letter(held.consumer_id, held.topic, held.record_key_hash), p_dead_letter_id);
        END IF;
    END IF;
    RETURN NULL;
END
$$;

-- Makes the first dead letter of a record key due if it waits for its turn. Each change of the dead letters of a key ends
-- with this, under the lock of the key's row. So no key waits for a dead letter that itself waits.
CREATE FUNCTION pawl.make_first_dead_letter_due(p_consumer_id integer, p_topic text, p_record_key_hash bytea)
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    first bigint := pawl.first_dead_letter(p_consumer_id, p_topic, p_record_key_hash);
BEGIN
    UPDATE pawl.dead_letters d
       SET due_at = clock_timestamp()
     WHERE d.dead_letter_id = first AND d.due_at = 'infinity';
END
$$;

-- Whether messages of this record key must be parked. Locks the key's row until the transaction ends, and deletes the row if
-- no dead letter is unresolved: each statement here sees what was committed before it started.
CREATE FUNCTION pawl.is_parked(p_consumer_id integer, p_topic text, p_record_key bytea)
RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$
DECLARE
    hash bytea := sha256(p_record_key);
BEGIN
    PERFORM FROM pawl.parked_keys k
      WHERE k.consumer_id = p_consumer_id AND k.topic = p_topic AND k.record_key_hash = hash
        FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF pawl.first_dead_letter(p_consumer_id, p_topic, hash) IS NOT NULL THEN
        RETURN true;
    END IF;
    DELETE FROM pawl.parked_keys k
     WHERE k.consumer_id = p_consumer_id AND k.topic = p_topic AND k.record_key_hash = hash;
    RETURN false;
END
$$;

-- The index, from 0, of the first of these record keys that is parked. NULL: none is.
CREATE FUNCTION pawl.first_parked(p_consumer_id integer, p_topic text, p_record_keys bytea[])
RETURNS bigint
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
BEGIN
    RETURN (SELECT asked.place - 1
              FROM unnest(p_record_keys) WITH ORDINALITY AS asked (record_key, place)
             CROSS JOIN LATERAL (SELECT FROM pawl.parked_keys k
                                  WHERE k.consumer_id = p_consumer_id AND k.topic = p_topic
                                    AND k.record_key_hash = sha256(asked.record_key) OFFSET 0) parked
             ORDER BY asked.place LIMIT 1);
END
$$;

-- Locks the record key of a dead letter if the key is parked.
CREATE FUNCTION pawl.lock_record_key(p_dead_letter_id bigint)
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    held record;
BEGIN
    SELECT d.consumer_id, d.topic, d.record_key_hash INTO held
      FROM pawl.dead_letters d WHERE d.dead_letter_id = p_dead_letter_id;
    PERFORM FROM pawl.parked_keys k
      WHERE k.consumer_id = held.consumer_id AND k.topic = held.topic AND k.record_key_hash = held.record_key_hash
        FOR NO KEY UPDATE;
END
$$;

-- ---- storing and resolving dead letters -------------------------------------------------------------------

-- Stores a message as a dead letter, or parked, and returns its number. If an offset is set back, its messages fail again:
-- an unresolved dead letter is updated. Another message at the same offset is another dead letter. A message that is only
-- parked again changes nothing else. Two owners that both find none cannot both commit, because the stored offset advances
-- in the same transaction.
CREATE FUNCTION pawl.store_dead_letter(
    p_consumer_id integer, p_topic text, p_topic_id text, p_partition integer, p_offset bigint,
    p_leader_epoch integer, p_timestamp_ms bigint, p_status text, p_reason text, p_handler text,
    p_idempotency_key text, p_sqlstate text, p_statement text, p_error text, p_error_detail text, p_attempts integer,
    p_record_key bytea, p_record_key_hash bytea, p_record_value bytea, p_value_bytes bigint, p_headers jsonb,
    p_payload text, p_message_digest bytea)
RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_incremental_sort = off
SET jit = off AS $$
DECLARE
    known bigint;
    parked_again boolean := p_status = 'parked';
BEGIN
    SELECT s.dead_letter_id INTO known
      FROM pawl.dead_letters s
     WHERE s.consumer_id = p_consumer_id AND s.topic = p_topic AND s.partition = p_partition
       AND (s.kafka_offset, s.dead_letter_id) >= (p_offset, 0) AND s.kafka_offset <= p_offset
       AND s.status IN ('dead', 'parked')
       AND coalesce(s.topic_id = p_topic_id, true)
       AND coalesce(s.message_digest = p_message_digest,
                    s.timestamp_ms = p_timestamp_ms
                    AND s.record_key_hash IS NOT DISTINCT FROM p_record_key_hash
                    AND s.value_bytes IS NOT DISTINCT FROM p_value_bytes)
     ORDER BY s.kafka_offset, s.dead_letter_id LIMIT 1;
    IF known IS NOT NULL THEN
        UPDATE pawl.dead_letters d
           SET status = CASE WHEN parked_again THEN d.status ELSE p_status END,
               reason = CASE WHEN parked_again THEN d.reason ELSE p_reason END,
               handler = CASE WHEN parked_again THEN d.handler ELSE p_handler END,
               idempotency_key = coalesce(p_idempotency_key, d.idempotency_key),
               sqlstate = CASE WHEN parked_again THEN d.sqlstate ELSE p_sqlstate END,
               statement = CASE WHEN parked_again THEN d.statement ELSE p_statement END,
               error = CASE WHEN parked_again THEN d.error ELSE p_error END,
               error_detail = CASE WHEN parked_again THEN d.error_detail ELSE p_error_detail END,
               attempts = d.attempts + p_attempts, died_at = clock_timestamp(),
               message_digest = p_message_digest
         WHERE d.dead_letter_id = known AND d.status NOT IN ('replayed', 'discarded');
        IF FOUND THEN
            RETURN known;
        END IF;
    END IF;
    INSERT INTO pawl.dead_letters
           (consumer_id, topic, topic_id, partition, kafka_offset, leader_epoch, timestamp_ms, status,
            reason, handler, idempotency_key, sqlstate, statement, error, error_detail, attempts, record_key,
            record_key_hash, record_value, value_bytes, headers, payload, message_digest)
    VALUES (p_consumer_id, p_topic, p_topic_id, p_partition, p_offset, p_leader_epoch, p_timestamp_ms, p_status,
            p_reason, p_handler, p_idempotency_key, p_sqlstate, p_statement, p_error, p_error_detail, p_attempts,
            p_record_key, p_record_key_hash, p_record_value, p_value_bytes, p_headers, p_payload, p_message_digest)
    RETURNING dead_letter_id INTO known;
    RETURN known;
END
$$;
COMMENT ON FUNCTION pawl.store_dead_letter IS 'Stores a message as a dead letter, or parked after one.';

-- Schedules what pawl.store_dead_letter stored: after p_retry_after_ms, or, for a parked message (NULL), when its turn
-- comes. A dead letter that was stored before, and is only parked again, keeps its schedule. A parked message whose offset
-- was set back may be the first of its key: no resolution would make it due.
CREATE FUNCTION pawl.schedule_dead_letter(
    p_consumer_id integer, p_topic text, p_partition integer, p_offset bigint, p_message_digest bytea,
    p_retry_after_ms bigint)
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_incremental_sort = off
SET jit = off AS $$
DECLARE
    chosen bigint;
BEGIN
    FOR chosen IN
        SELECT d.dead_letter_id
          FROM pawl.dead_letters d
         WHERE d.consumer_id = p_consumer_id AND d.topic = p_topic AND d.partition = p_partition
           AND (d.kafka_offset, d.dead_letter_id) >= (p_offset, 0) AND d.kafka_offset <= p_offset
           AND d.message_digest = p_message_digest
         ORDER BY d.kafka_offset, d.dead_letter_id
    LOOP
        UPDATE pawl.dead_letters d
           SET due_at = CASE WHEN p_retry_after_ms IS NOT NULL
                             THEN clock_timestamp() + make_interval(secs => p_retry_after_ms / 1000.0)
                             WHEN pawl.dead_letter_before(d.dead_letter_id) IS NULL THEN clock_timestamp()
                             ELSE 'infinity' END,
               retries = CASE WHEN p_retry_after_ms IS NULL THEN -1 ELSE 0 END
         WHERE d.dead_letter_id = chosen
           AND (d.status = 'dead' AND p_retry_after_ms IS NOT NULL OR d.status = 'parked' AND d.due_at IS NULL);
    END LOOP;
END
$$;

-- Claims a due dead letter for a delayed retry, before its handler runs. The time of the next retry is stored first, so that
-- a dead letter that crashes processes is not retried without limit. False: it is resolved, another process has claimed it,
-- or another dead letter of its record key is next. Locks as pawl.resolve_dead_letter does. p_uncounted: the previous retry
-- does not count.
CREATE FUNCTION pawl.claim_due_dead_letter(
    p_dead_letter_id bigint, p_retries integer, p_next interval, p_alone boolean DEFAULT NULL,
    p_uncounted boolean DEFAULT false, p_pid integer DEFAULT NULL, p_backend_start timestamptz DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    held pawl.dead_letters%ROWTYPE;
    first boolean;
BEGIN
    UPDATE pawl.parked_keys k
       SET parked_at = k.parked_at
      FROM pawl.dead_letters d
     WHERE d.dead_letter_id = p_dead_letter_id
       AND k.consumer_id = d.consumer_id AND k.topic = d.topic AND k.record_key_hash = d.record_key_hash;
    SELECT * INTO held FROM pawl.dead_letters d WHERE d.dead_letter_id = p_dead_letter_id FOR UPDATE;
    IF NOT FOUND OR held.status NOT IN ('dead', 'parked') OR held.retries <> p_retries
       OR held.due_at > clock_timestamp() OR held.due_at IS NULL
       -- The number does not show whether another process has made the uncounted retry again.
       OR (p_uncounted AND held.tried_alone IS DISTINCT FROM false)
       OR NOT EXISTS (SELECT FROM pawl.processed_kafka_offsets r
                       WHERE r.consumer_id = held.consumer_id AND r.topic = held.topic
                         AND r.partition = held.partition AND r.state = 'running') THEN
        RETURN false;
    END IF;
    first := pawl.dead_letter_before(p_dead_letter_id) IS NULL;
    IF NOT first THEN
        UPDATE pawl.dead_letters d SET due_at = 'infinity' WHERE d.dead_letter_id = p_dead_letter_id;
        PERFORM pawl.make_first_dead_letter_due(held.consumer_id, held.topic, held.record_key_hash);
        RETURN false;
    END IF;
    UPDATE pawl.dead_letters d
       SET due_at = clock_timestamp() + p_next,
           retries = d.retries + (NOT p_uncounted)::integer,
           tried_alone = p_alone, tried_pid = p_pid, tried_backend_start = p_backend_start
     WHERE d.dead_letter_id = p_dead_letter_id;
    RETURN true;
END
$$;

-- The last step of a replay's transaction, instead of advancing the offset. Raises if the dead letter is resolved, or an
-- earlier one of its parked record key is not. Raises as well if another transaction claimed the idempotency key.
--
-- The record key's row is updated, not only locked. Otherwise a claim under REPEATABLE READ or SERIALIZABLE with an older
-- snapshot would get the lock and decide by outdated dead letters. So that claim fails with 40001 and is retried.
CREATE FUNCTION pawl.resolve_dead_letter(
    p_dead_letter_id bigint, p_transaction xid8, p_status text, p_resolution text)
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    held pawl.dead_letters%ROWTYPE;
    before bigint;
BEGIN
    IF p_transaction IS NOT NULL AND p_transaction IS DISTINCT FROM pg_current_xact_id_if_assigned() THEN
        RAISE EXCEPTION 'the transaction that claimed the key has ended before the dead letter was resolved'
            USING ERRCODE = 'PW003',
                  HINT = 'A handler must not send COMMIT, ROLLBACK or BEGIN; use savepoints (pqxx::subtransaction).';
    END IF;
    -- The record key's row first: a message that arrives meanwhile must not be parked after this one.
    UPDATE pawl.parked_keys k
       SET parked_at = k.parked_at
      FROM pawl.dead_letters d
     WHERE d.dead_letter_id = p_dead_letter_id
       AND k.consumer_id = d.consumer_id AND k.topic = d.topic AND k.record_key_hash = d.record_key_hash;
    SELECT * INTO held FROM pawl.dead_letters d WHERE d.dead_letter_id = p_dead_letter_id FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'dead letter % does not exist', p_dead_letter_id USING ERRCODE = 'PW005';
    ELSIF held.status NOT IN ('dead', 'parked') THEN
        RAISE EXCEPTION 'dead letter % is already %', p_dead_letter_id, held.status USING ERRCODE = 'PW005';
    END IF;
    IF p_status = 'replayed' THEN
        before := pawl.dead_letter_before(p_dead_letter_id);
        IF before IS NOT NULL THEN
            RAISE EXCEPTION 'dead letter % waits for dead letter % of the same record key', p_dead_letter_id, before
                USING ERRCODE = 'PW006';
        END IF;
    END IF;
    UPDATE pawl.dead_letters d
       SET status = p_status, resolution = p_resolution, resolved_by = session_user,
           resolved_at = clock_timestamp(), due_at = NULL, replays = d.replays + (p_status = 'replayed')::integer
     WHERE d.dead_letter_id = p_dead_letter_id;
    PERFORM pawl.make_first_dead_letter_due(held.consumer_id, held.topic, held.record_key_hash);
END
$$;
