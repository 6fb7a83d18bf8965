-- Stored offsets: how far each partition is processed, which process owns it, and whether it is halted.

-- ---- stored offsets ---------------------------------------------------------------------------------------

-- Each message updates its partition's row. So only the primary key is indexed, and half of each page stays free for HOT
-- updates (PostgreSQL manual, "Heap-Only Tuples"). The functions below keep rules that CHECK constraints would cost each
-- message to verify: the columns halt_* are NULL unless the state is halted.
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
    suspects_left         boolean NOT NULL DEFAULT false,
    acquired_at           timestamptz,
    topic_id              text,
    leader_epoch          integer,
    state                 text NOT NULL DEFAULT 'running',
    state_since           timestamptz NOT NULL DEFAULT now(),
    operator_reason       text,
    halt_kind             text,
    halt_code             text,
    halt_offset           bigint,
    halt_handler          text,
    halt_cause            text,
    halt_parameters       jsonb,
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
COMMENT ON TABLE pawl.processed_kafka_offsets IS
    'The stored offset, the owner, and the state of each partition. Change it with `pawl offsets` and `pawl partitions` only.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.consumer_id IS 'The consumer (pawl.consumers).';
COMMENT ON COLUMN pawl.processed_kafka_offsets.topic IS 'The topic.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.partition IS 'The partition.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.last_processed_offset IS
    'Each message up to this offset is applied, a duplicate, or recorded. The next offset, as commands show it, is this + 1. -1: none yet.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.owner_epoch IS
    'Fencing token that each acquire changes: a counter in the upper bits, 24 random bits below. Only the owner of this epoch advances the offset.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.owner IS
    'The process that acquired the partition last: HOST:PID:RANDOM. NULL: no process has acquired it.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.owner_pid IS
    'Server process of the owner''s session, to find it in pg_stat_activity. NULL: released, or unknown through a pooler.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.owner_backend_start IS
    'backend_start of that session, because server process IDs are reused.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.released IS
    'True: the owner released the partition cleanly. False: it owns the partition, or it crashed.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.suspects_left IS
    'If released: messages were on probation at the release, and the next owner continues the probation.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.acquired_at IS 'When the owner acquired the partition.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.topic_id IS
    'ID of the topic in Kafka: it changes if the topic is deleted and created again. NULL: unknown.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.leader_epoch IS
    'Leader epoch (KIP-320) of the record at last_processed_offset. NULL: unknown.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.state IS 'running, paused (by an operator), or halted (by its owner).';
COMMENT ON COLUMN pawl.processed_kafka_offsets.state_since IS
    'When the state started. A halt for another cause starts it again; a repetition of the same halt does not.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.operator_reason IS
    'Reason that an operator gave for the last pause or resume. NULL while halted.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.halt_kind IS
    'Class of the halt: message, program, circuit-breaker, unknown-outcome, crash, crash-loop, or position. NULL unless halted, as the other columns halt_*.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.halt_code IS
    'What happened, as a code that the runbook lists, for example message_failed.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.halt_offset IS
    'Offset of the message that halts the partition. NULL: the halt is not about one message.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.halt_handler IS 'Handler of that message. NULL: unknown, or none.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.halt_cause IS
    'The error, at most 2,000 characters. NULL: the code and its parameters describe it completely.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.halt_parameters IS
    'Further facts that belong to the code, as an object, for example {"sqlstate": "22P02", "attempts": 7}.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.attempts IS
    'Failed attempts of the message at attempts_offset that count. It has no meaning once that message is processed.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.attempts_offset IS 'Offset of the message that attempts counts.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.base_offset IS
    'Next offset when the counters below were 0: the first offset that they include. Setting an offset resets them.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.applied_count IS 'Messages applied.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.duplicate_count IS
    'Duplicates: messages with an idempotency key that was already stored.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.skipped_count IS 'Messages skipped.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.unchecked_count IS
    'Messages applied without an idempotency key; applied_count includes them.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.dead_count IS 'Messages stored as dead letters.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.parked_count IS
    'Messages parked after a dead letter of the same record key.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.last_timestamp_ms IS
    'Timestamp of the last processed message, in Unix milliseconds; retention uses it. NULL: unknown.';
COMMENT ON COLUMN pawl.processed_kafka_offsets.updated_at IS
    'When the stored offset last advanced, or an operator changed the row.';

CREATE TABLE pawl.offset_history (
    history_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer_id integer NOT NULL REFERENCES pawl.consumers,
    topic       text COLLATE "C" NOT NULL,
    partition   integer NOT NULL,
    happened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    action      text NOT NULL,
    from_offset bigint,
    to_offset   bigint,
    halt_code   text,
    reason      text,
    actor       text NOT NULL DEFAULT session_user
);
COMMENT ON TABLE pawl.offset_history IS
    'Changes of a stored offset or a state other than by processing messages: first assignments, halts, and operators'' commands.';
COMMENT ON COLUMN pawl.offset_history.history_id IS 'Number of the change, ascending.';
COMMENT ON COLUMN pawl.offset_history.consumer_id IS 'The consumer (pawl.consumers).';
COMMENT ON COLUMN pawl.offset_history.topic IS 'The topic.';
COMMENT ON COLUMN pawl.offset_history.partition IS 'The partition.';
COMMENT ON COLUMN pawl.offset_history.happened_at IS 'When the change happened.';
COMMENT ON COLUMN pawl.offset_history.action IS 'What happened, for example halt, pause, resume, skip, or offsets set.';
COMMENT ON COLUMN pawl.offset_history.from_offset IS
    'Next offset before the change; of a skip, after it. NULL: no offset was stored. Of try, dlq replay, and dlq discard: the message''s offset.';
COMMENT ON COLUMN pawl.offset_history.to_offset IS
    'Next offset after the change. NULL: no offset is stored any more. Of try, dlq replay, and dlq discard: the message''s offset.';
COMMENT ON COLUMN pawl.offset_history.halt_code IS
    'Of a halt: its code, as in processed_kafka_offsets.halt_code. NULL: another action.';
COMMENT ON COLUMN pawl.offset_history.reason IS
    'Of a halt: its cause. Of an operator''s change: the reason that the operator gave.';
COMMENT ON COLUMN pawl.offset_history.actor IS 'Database role that made the change.';

-- A row that a process owns must not be deleted: the next message of that process would have nothing to compare with.
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
    RAISE EXCEPTION 'a process owns rows of pawl.processed_kafka_offsets, so they cannot be removed'
        USING ERRCODE = 'PW007',
              HINT = 'Stop the consumer. If its processes crashed, set released = true in their rows.';
END
$$;
CREATE TRIGGER keep_owned_rows BEFORE DELETE ON pawl.processed_kafka_offsets
    FOR EACH ROW EXECUTE FUNCTION pawl.keep_owned_rows();
CREATE TRIGGER keep_owned_rows_truncate BEFORE TRUNCATE ON pawl.processed_kafka_offsets
    FOR EACH STATEMENT EXECUTE FUNCTION pawl.keep_owned_rows();

-- ---- completions out of order -----------------------------------------------------------------------------

-- Handlers with a concurrency window complete messages out of the log's order. Key and effects of each message commit
-- together, and the stored offset follows (docs/concurrency.md).

-- A transaction that completes a message out of order does not update the offset row. It holds a shared advisory lock on
-- the fence and then compares the epoch; a session that raises the epoch holds that lock exclusively. So an acquire waits
-- for transactions that are about to commit and rejects all later ones. Row locks would not do, because sharers overtake a
-- session that waits to update the row.
CREATE TABLE pawl.partition_fences (
    fence_id    integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer_id integer NOT NULL REFERENCES pawl.consumers,
    topic       text COLLATE "C" NOT NULL,
    partition   integer NOT NULL,
    epoch       bigint NOT NULL,
    UNIQUE (consumer_id, topic, partition)
) WITH (fillfactor = 50);
COMMENT ON TABLE pawl.partition_fences IS
    'The fence of each partition: it rejects completions of a process that no longer owns the partition.';
COMMENT ON COLUMN pawl.partition_fences.fence_id IS 'Number of the fence, also of its advisory lock.';
COMMENT ON COLUMN pawl.partition_fences.consumer_id IS 'The consumer (pawl.consumers).';
COMMENT ON COLUMN pawl.partition_fences.topic IS 'The topic.';
COMMENT ON COLUMN pawl.partition_fences.partition IS 'The partition.';
COMMENT ON COLUMN pawl.partition_fences.epoch IS
    'processed_kafka_offsets.owner_epoch, as it was last raised. Only the owner of this epoch completes messages.';

CREATE TABLE pawl.out_of_order_completions (
    fence_id     integer NOT NULL,
    kafka_offset bigint NOT NULL,
    outcome      text,
    attempts     integer NOT NULL DEFAULT 0,
    leader_epoch integer,
    digest       bigint NOT NULL,
    changed_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (fence_id, kafka_offset)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000,
    vacuum_truncate = false);
COMMENT ON TABLE pawl.out_of_order_completions IS
    'Messages after the stored offset that are completed or retried. pawl deletes a row once the stored offset has passed it.';
COMMENT ON COLUMN pawl.out_of_order_completions.fence_id IS 'The partition (pawl.partition_fences).';
COMMENT ON COLUMN pawl.out_of_order_completions.kafka_offset IS 'Offset of the message.';
COMMENT ON COLUMN pawl.out_of_order_completions.outcome IS
    'How the message ended: applied, duplicate, skipped, unchecked, dead, or parked. NULL: it is being retried.';
COMMENT ON COLUMN pawl.out_of_order_completions.attempts IS 'Failed attempts of the message that count.';
COMMENT ON COLUMN pawl.out_of_order_completions.leader_epoch IS 'Leader epoch (KIP-320) of the record. NULL: unknown.';
COMMENT ON COLUMN pawl.out_of_order_completions.digest IS
    'Digest of timestamp, key, and value, because offsets are used again after a truncation of the log.';
COMMENT ON COLUMN pawl.out_of_order_completions.changed_at IS 'When the row was last written.';

-- ---- owning a partition -----------------------------------------------------------------------------------

-- The owner epoch of the next acquire: a counter in the upper bits, and 24 random bits. Another database, or this one after
-- it lost its last commits, does not assign the same epoch again. So no advance succeeds there without an acquire.
CREATE FUNCTION pawl.next_epoch(p_epoch bigint)
RETURNS bigint
LANGUAGE sql VOLATILE AS $$
    SELECT (((p_epoch >> 24) + 1) << 24) | floor(random() * 16777216)::bigint
$$;

-- Raises the epoch of the partition's fence, under the lock of the offset row, and returns the fence's number.
-- p_new: the offset row was never acquired before.
CREATE FUNCTION pawl.raise_fence(
    p_consumer_id integer, p_topic text, p_partition integer, p_epoch bigint, p_new boolean)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    fence integer;
BEGIN
    SELECT f.fence_id INTO fence FROM pawl.partition_fences f
     WHERE f.consumer_id = p_consumer_id AND f.topic = p_topic AND f.partition = p_partition;
    IF NOT FOUND THEN
        INSERT INTO pawl.partition_fences (consumer_id, topic, partition, epoch)
        VALUES (p_consumer_id, p_topic, p_partition, p_epoch)
        RETURNING fence_id INTO fence;
    END IF;
    -- 'pawf' in ASCII: the class of these locks. Waits for transactions that are about to commit, up to lock_timeout.
    PERFORM pg_advisory_xact_lock(1885435750, fence);
    UPDATE pawl.partition_fences f SET epoch = p_epoch WHERE f.fence_id = fence;
    -- These completions belong to an offset row that was deleted.
    IF p_new THEN
        DELETE FROM pawl.out_of_order_completions a WHERE a.fence_id = fence;
    END IF;
    RETURN fence;
END
$$;

-- Acquires the partition for a new owner. The row lock waits for a commit of the previous owner that is in progress, so the
-- result is definitive. The new epoch makes each later advance of the previous owner fail. Returns no row if no offset is
-- stored for the partition yet (first assignment).
CREATE FUNCTION pawl.acquire(
    p_consumer_id integer, p_topic text, p_partition integer,
    p_owner text, p_owner_pid integer, p_owner_backend_start timestamptz)
RETURNS TABLE (
    epoch bigint, stored_offset bigint, state text, operator_reason text, halt_kind text, halt_code text,
    halt_offset bigint, halt_handler text, halt_cause text, halt_parameters jsonb,
    topic_id text, leader_epoch integer, released boolean,
    previous_owner text, previous_pid integer, previous_backend_start timestamptz, fence integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    held pawl.processed_kafka_offsets%ROWTYPE;
    raised integer;
    next_epoch bigint;
BEGIN
    SELECT * INTO held
      FROM pawl.processed_kafka_offsets r
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    next_epoch := pawl.next_epoch(held.owner_epoch);
    raised := pawl.raise_fence(p_consumer_id, p_topic, p_partition, next_epoch, held.owner_epoch = 0);
    UPDATE pawl.processed_kafka_offsets r
       SET owner_epoch = next_epoch,
           owner = p_owner,
           owner_pid = p_owner_pid,
           owner_backend_start = p_owner_backend_start,
           released = false,
           acquired_at = clock_timestamp()
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition;
    RETURN QUERY SELECT next_epoch, held.last_processed_offset, held.state, held.operator_reason,
                        held.halt_kind, held.halt_code, held.halt_offset, held.halt_handler,
                        held.halt_cause, held.halt_parameters, held.topic_id, held.leader_epoch, held.released,
                        held.owner, held.owner_pid, held.owner_backend_start, raised;
END
$$;

-- Releases the partition cleanly. Does nothing if another process has acquired it meanwhile.
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

-- Stores that the owner halted the partition, as facts: texts for people are rendered from the code. The epoch is compared,
-- not changed: the owner keeps the partition and waits. A repetition of the same halt keeps its time.
CREATE FUNCTION pawl.halt(
    p_consumer_id integer, p_topic text, p_partition integer, p_epoch bigint,
    p_kind text, p_code text, p_offset bigint, p_handler text, p_cause text, p_parameters jsonb)
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
    IF held.state = 'halted'
       AND (held.halt_kind, held.halt_code, held.halt_offset, held.halt_handler, held.halt_cause)
           IS NOT DISTINCT FROM (p_kind, p_code, p_offset, p_handler, p_cause) THEN
        UPDATE pawl.processed_kafka_offsets r
           SET halt_parameters = p_parameters
         WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition
           AND r.halt_parameters IS DISTINCT FROM p_parameters;
        RETURN true;
    END IF;
    UPDATE pawl.processed_kafka_offsets r
       SET state = 'halted', state_since = clock_timestamp(), operator_reason = NULL,
           halt_kind = p_kind, halt_code = p_code, halt_offset = p_offset, halt_handler = p_handler,
           halt_cause = p_cause, halt_parameters = p_parameters
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition;
    INSERT INTO pawl.offset_history
           (consumer_id, topic, partition, action, from_offset, to_offset, halt_code, reason)
    VALUES (p_consumer_id, p_topic, p_partition, 'halt', held.last_processed_offset + 1,
            held.last_processed_offset + 1, p_code, p_cause);
    RETURN true;
END
$$;

-- An operator's change is an acquire: it changes the epoch, so the owner is fenced, acquires the partition again, and reads
-- the new offset or state. p_offset, and the result, which was stored before, are values of last_processed_offset. p_offset
-- NULL keeps the offset, p_state NULL keeps the state. The owner stays in the row, because it finds its partitions by that
-- when it polls for commands.
CREATE FUNCTION pawl.operator_change(
    p_consumer_id integer, p_topic text, p_partition integer,
    p_offset bigint, p_state text, p_action text, p_reason text)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    held pawl.processed_kafka_offsets%ROWTYPE;
    fence integer;
    next_epoch bigint;
BEGIN
    IF p_state NOT IN ('running', 'paused') THEN
        RAISE EXCEPTION 'an operator can set a partition to running or paused, not to %', p_state
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Only the owner of a partition halts it (pawl.halt).';
    END IF;
    SELECT * INTO held
      FROM pawl.processed_kafka_offsets r
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no offset is stored for %[%]', p_topic, p_partition USING ERRCODE = 'PW004';
    END IF;
    next_epoch := pawl.next_epoch(held.owner_epoch);
    fence := pawl.raise_fence(p_consumer_id, p_topic, p_partition, next_epoch, held.owner_epoch = 0);
    -- The skipped message is already counted as processed here. It may have been completed just before.
    IF p_action = 'skip' AND EXISTS (
        SELECT FROM pawl.out_of_order_completions a
         WHERE a.fence_id = fence AND a.kafka_offset = held.last_processed_offset AND a.outcome IS NOT NULL) THEN
        RAISE EXCEPTION 'out of order: %[%]@% is already processed',
                        p_topic, p_partition, held.last_processed_offset
            USING ERRCODE = 'PW002';
    END IF;
    -- Messages from the new offset on are processed again, unless they were completed after it.
    DELETE FROM pawl.out_of_order_completions a
     WHERE a.fence_id = fence
       AND (a.outcome IS NULL OR a.kafka_offset <= p_offset OR p_offset <= held.last_processed_offset);
    UPDATE pawl.processed_kafka_offsets r
       SET owner_epoch = next_epoch,
           last_processed_offset = coalesce(p_offset, held.last_processed_offset),
           base_offset = coalesce(p_offset + 1, held.base_offset),
           applied_count = CASE WHEN p_offset IS NULL THEN held.applied_count ELSE 0 END,
           duplicate_count = CASE WHEN p_offset IS NULL THEN held.duplicate_count ELSE 0 END,
           skipped_count = CASE WHEN p_offset IS NULL THEN held.skipped_count ELSE 0 END,
           unchecked_count = CASE WHEN p_offset IS NULL THEN held.unchecked_count ELSE 0 END,
           dead_count = CASE WHEN p_offset IS NULL THEN held.dead_count ELSE 0 END,
           parked_count = CASE WHEN p_offset IS NULL THEN held.parked_count ELSE 0 END,
           -- An operator who resumes or moves a partition has acted on its message: the count starts again.
           attempts = 0,
           attempts_offset = NULL,
           -- An offset that an operator sets belongs to the topic as it is now.
           topic_id = CASE WHEN p_offset IS NULL THEN held.topic_id END,
           leader_epoch = CASE WHEN p_offset IS NULL THEN held.leader_epoch END,
           state = coalesce(p_state, held.state),
           operator_reason = CASE WHEN p_state IS NULL THEN held.operator_reason ELSE p_reason END,
           halt_kind = CASE WHEN p_state IS NULL THEN held.halt_kind END,
           halt_code = CASE WHEN p_state IS NULL THEN held.halt_code END,
           halt_offset = CASE WHEN p_state IS NULL THEN held.halt_offset END,
           halt_handler = CASE WHEN p_state IS NULL THEN held.halt_handler END,
           halt_cause = CASE WHEN p_state IS NULL THEN held.halt_cause END,
           halt_parameters = CASE WHEN p_state IS NULL THEN held.halt_parameters END,
           state_since = CASE WHEN p_state IS NULL THEN held.state_since ELSE clock_timestamp() END,
           updated_at = clock_timestamp()
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition;
    DELETE FROM pawl.suspects s
     WHERE s.consumer_id = p_consumer_id AND s.topic = p_topic AND s.partition = p_partition;
    INSERT INTO pawl.offset_history (consumer_id, topic, partition, action, from_offset, to_offset, reason)
    VALUES (p_consumer_id, p_topic, p_partition, p_action, held.last_processed_offset + 1,
            coalesce(p_offset, held.last_processed_offset) + 1, p_reason);
    RETURN held.last_processed_offset;
END
$$;

-- ---- advancing the stored offset --------------------------------------------------------------------------

-- Raises the reason why the last step of a message's transaction must not advance the offset. That step
-- (framework/ledger/advance_text.cpp) calls it unless this owner advances exactly from the offset that it expects, inside
-- the transaction that claimed the key. An "UPDATE 0" would not stop the COMMIT that is already sent.
CREATE FUNCTION pawl.reject_advance(
    held pawl.processed_kafka_offsets, p_epoch bigint, p_previous bigint, p_new bigint, p_transaction xid8)
RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    IF p_transaction IS NOT NULL AND p_transaction IS DISTINCT FROM pg_current_xact_id_if_assigned() THEN
        RAISE EXCEPTION 'the transaction that claimed the key has ended before the offset was stored'
            USING ERRCODE = 'PW003',
                  HINT = 'A handler must not send COMMIT, ROLLBACK or BEGIN; use savepoints (pqxx::subtransaction).';
    ELSIF held.owner_epoch <> p_epoch THEN
        RAISE EXCEPTION 'fenced: %[%] has owner epoch %, not %: acquired by % or changed by an operator',
                        held.topic, held.partition, held.owner_epoch, p_epoch, coalesce(held.owner, 'another process')
            USING ERRCODE = 'PW001';
    ELSE
        RAISE EXCEPTION 'out of order: the stored offset of %[%] is %, not %, and cannot become %',
                        held.topic, held.partition, held.last_processed_offset, p_previous, p_new
            USING ERRCODE = 'PW002';
    END IF;
END
$$;

-- Raises the reason why the stored offset must not advance past messages: as pawl.reject_advance, or because a message is
-- not completed.
CREATE FUNCTION pawl.reject_advance_past(
    held pawl.processed_kafka_offsets, p_epoch bigint, p_previous bigint, p_new bigint,
    p_messages bigint, p_finished bigint)
RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    IF held.owner_epoch = p_epoch AND held.last_processed_offset = p_previous AND p_finished < p_messages THEN
        RAISE EXCEPTION 'out of order: the stored offset of %[%] cannot advance from % to %: of % messages, % are completed',
                        held.topic, held.partition, p_previous, p_new, p_messages, p_finished
            USING ERRCODE = 'PW002';
    END IF;
    RETURN pawl.reject_advance(held, p_epoch, p_previous, p_new, NULL);
END
$$;

-- Raises the reason why a message must not be completed out of order. An INSERT of no row would not stop the COMMIT that is
-- already sent.
CREATE FUNCTION pawl.reject_finish(p_fence integer, p_epoch bigint, p_stored bigint, p_transaction xid8)
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    fence pawl.partition_fences%ROWTYPE;
    held pawl.processed_kafka_offsets%ROWTYPE;
BEGIN
    IF p_transaction IS NOT NULL AND p_transaction IS DISTINCT FROM pg_current_xact_id_if_assigned() THEN
        RAISE EXCEPTION 'the transaction that claimed the key has ended before the message was completed'
            USING ERRCODE = 'PW003',
                  HINT = 'A handler must not send COMMIT, ROLLBACK or BEGIN; use savepoints (pqxx::subtransaction).';
    END IF;
    SELECT * INTO fence FROM pawl.partition_fences f WHERE f.fence_id = p_fence;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'fenced: this database has no fence %, because it lost the acquire of the partition', p_fence
            USING ERRCODE = 'PW001';
    END IF;
    SELECT * INTO held FROM pawl.processed_kafka_offsets r
     WHERE r.consumer_id = fence.consumer_id AND r.topic = fence.topic AND r.partition = fence.partition;
    IF fence.epoch <> p_epoch OR held.owner_epoch IS DISTINCT FROM p_epoch THEN
        RAISE EXCEPTION 'fenced: %[%] has owner epoch %, not %: acquired by another process or changed by an operator',
                        fence.topic, fence.partition, coalesce(held.owner_epoch, fence.epoch), p_epoch
            USING ERRCODE = 'PW001';
    END IF;
    RAISE EXCEPTION 'out of order: the stored offset of %[%] went back from % to %: this database lost commits',
                    fence.topic, fence.partition, p_stored, held.last_processed_offset
        USING ERRCODE = 'PW002';
END
$$;

CREATE FUNCTION pawl.reject_second_finish(p_message pawl.out_of_order_completions)
RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'out of order: the message at offset % is already completed, as %',
                    p_message.kafka_offset, p_message.outcome
        USING ERRCODE = 'PW002';
END
$$;

-- Raises unless the partition of the fence has this owner epoch, and its stored offset is at least p_stored, which the
-- caller has seen stored.
CREATE FUNCTION pawl.require_owned(p_fence integer, p_epoch bigint, p_stored bigint)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM pawl.partition_fences f JOIN pawl.processed_kafka_offsets r USING (consumer_id, topic, partition)
      WHERE f.fence_id = p_fence AND f.epoch = p_epoch AND r.owner_epoch = p_epoch
        AND r.last_processed_offset >= p_stored;
    IF NOT FOUND THEN
        PERFORM pawl.reject_finish(p_fence, p_epoch, p_stored, NULL);
    END IF;
END
$$;

-- Whether a message after the stored offset is completed.
CREATE FUNCTION pawl.is_finished(p_fence integer, p_offset bigint)
RETURNS boolean
LANGUAGE plpgsql STABLE
SET enable_seqscan = off AS $$
BEGIN
    PERFORM FROM pawl.out_of_order_completions a
      WHERE a.fence_id = p_fence AND a.kafka_offset = p_offset AND a.outcome IS NOT NULL;
    RETURN FOUND;
END
$$;

-- Raises because the previous message of the same order key, which the caller has seen completed, is not completed here. The
-- stored offset does not show that while an earlier message of another key is in progress.
CREATE FUNCTION pawl.reject_predecessor(p_fence integer, p_offset bigint)
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    fence pawl.partition_fences%ROWTYPE;
BEGIN
    SELECT * INTO fence FROM pawl.partition_fences f WHERE f.fence_id = p_fence;
    RAISE EXCEPTION 'out of order: %[%]@% was completed before and is not now: this database lost commits',
                    fence.topic, fence.partition, p_offset
        USING ERRCODE = 'PW002';
END
$$;

-- Whether that message is completed.
CREATE FUNCTION pawl.require_predecessor(p_fence integer, p_offset bigint)
RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN pawl.is_finished(p_fence, p_offset)
                  OR EXISTS (SELECT FROM pawl.partition_fences f
                               JOIN pawl.processed_kafka_offsets r USING (consumer_id, topic, partition)
                              WHERE f.fence_id = p_fence AND r.last_processed_offset >= p_offset)
                THEN true
                ELSE pawl.reject_predecessor(p_fence, p_offset) END
$$;

-- Deletes completions after p_after up to p_upto, and returns their outcomes. Rows up to p_after were deleted before. An
-- index scan would read them again and again while an open transaction prevents vacuum.
CREATE FUNCTION pawl.remove_completions(p_fence integer, p_after bigint, p_upto bigint)
RETURNS TABLE (outcome text)
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY
        DELETE FROM pawl.out_of_order_completions a
         WHERE a.fence_id = p_fence AND a.kafka_offset > p_after AND a.kafka_offset <= p_upto
        RETURNING a.outcome;
END
$$;
