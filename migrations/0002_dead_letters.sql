-- What becomes of messages that cannot be applied: dead letters, and record keys whose later messages
-- wait (parked).
-- docs/failures.md explains them to operators, docs/design.md gives the reasons.

-- How messages ended beside being applied, and how often the one in hand has failed.
ALTER TABLE pawl.processed_kafka_offsets
    ADD COLUMN dead_count      bigint NOT NULL DEFAULT 0,
    ADD COLUMN parked_count    bigint NOT NULL DEFAULT 0,
    ADD COLUMN attempts        integer NOT NULL DEFAULT 0,
    ADD COLUMN attempts_offset bigint;
COMMENT ON COLUMN pawl.processed_kafka_offsets.attempts IS
    'Failed attempts of the message at attempts_offset that count against it; of no meaning once it is behind.';

CREATE TABLE pawl.dead_letters (
    dead_letter_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer_id     integer NOT NULL REFERENCES pawl.consumers,
    topic           text COLLATE "C" NOT NULL,
    topic_id        text,
    partition       integer NOT NULL,
    kafka_offset    bigint NOT NULL,
    leader_epoch    integer,
    timestamp_ms    bigint,
    -- dead: an operator decides; parked: waits in order behind a dead one of the same record key;
    -- replayed, discarded: done.
    status          text NOT NULL CHECK (status IN ('dead', 'parked', 'replayed', 'discarded')),
    reason          text NOT NULL,
    handler         text NOT NULL,
    idempotency_key text,
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
    -- omitted: dead_letters.store_payload = false, or erased.
    payload         text NOT NULL CHECK (payload IN ('complete', 'truncated', 'omitted', 'erased')),
    died_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    replays         integer NOT NULL DEFAULT 0,
    resolved_at     timestamptz,
    resolved_by     text,
    resolution      text,
    CHECK ((status IN ('dead', 'parked')) = (resolved_at IS NULL))
);
COMMENT ON COLUMN pawl.dead_letters.error_detail IS
    'DETAIL of PostgreSQL, which may quote values of rows. Never logged unless log.error_details says so.';
COMMENT ON COLUMN pawl.dead_letters.headers IS
    'Array of {"name": ..., "value": base64 or null}, in the producer''s order.';
-- A message is dead once, however often its partition is set back.
CREATE UNIQUE INDEX dead_letters_unresolved ON pawl.dead_letters (consumer_id, topic, partition, kafka_offset)
    WHERE status IN ('dead', 'parked');
CREATE INDEX dead_letters_by_place ON pawl.dead_letters (consumer_id, topic, partition, kafka_offset, dead_letter_id);
CREATE INDEX dead_letters_by_record_key ON pawl.dead_letters (consumer_id, topic, record_key_hash, partition, kafka_offset)
    WHERE status IN ('dead', 'parked');
CREATE INDEX dead_letters_resolved ON pawl.dead_letters (resolved_at) WHERE resolved_at IS NOT NULL;

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

-- The last step of a replay's transaction, in place of advance: RAISES unless this dead letter is
-- still to be resolved, nothing of its parked record key waits before it, and the transaction is the
-- one that claimed the idempotency key.
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
    PERFORM FROM pawl.parked_keys k
       JOIN pawl.dead_letters d USING (consumer_id, topic, record_key_hash)
      WHERE d.dead_letter_id = p_dead_letter_id
        FOR UPDATE OF k;
    SELECT * INTO held FROM pawl.dead_letters d WHERE d.dead_letter_id = p_dead_letter_id FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no dead letter %', p_dead_letter_id USING ERRCODE = 'PW005';
    ELSIF held.status NOT IN ('dead', 'parked') THEN
        RAISE EXCEPTION 'dead letter % is % already', p_dead_letter_id, held.status USING ERRCODE = 'PW005';
    END IF;
    IF p_status = 'replayed' AND held.record_key_hash IS NOT NULL THEN
        SELECT d.dead_letter_id INTO before
          FROM pawl.parked_keys k
          JOIN pawl.dead_letters d USING (consumer_id, topic, record_key_hash)
         WHERE k.consumer_id = held.consumer_id AND k.topic = held.topic
           AND k.record_key_hash = held.record_key_hash
           AND d.status IN ('dead', 'parked')
           AND (d.partition, d.kafka_offset) < (held.partition, held.kafka_offset)
         ORDER BY d.partition, d.kafka_offset
         LIMIT 1;
        IF FOUND THEN
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

-- An operator's change is an acquire: it raises the epoch, so the running owner is fenced, acquires
-- again and finds the new position or state. p_offset NULL keeps the position, p_state NULL the state.
-- The owner stays in the row: it is how the owner recognises its partitions when it looks for commands.
CREATE OR REPLACE FUNCTION pawl.operator_change(
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
