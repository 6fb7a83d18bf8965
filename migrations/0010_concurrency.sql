-- Handlers with `concurrency` finish messages out of the log's order. Key and effects of each commit together, as
-- always; the stored offset follows. docs/concurrency.md says what that promises, docs/design.md how it is kept.

-- A transaction that finishes a message ahead of the stored offset does not touch the register's row. It holds a shared
-- advisory lock on the fence and then compares the epoch; whoever raises the epoch holds that lock alone. So an acquire
-- waits for those that are about to commit and refuses all others. Row locks would not do: sharers overtake who waits to
-- change the row, for as long as there are any.
CREATE TABLE pawl.partition_fences (
    fence_id    integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer_id integer NOT NULL REFERENCES pawl.consumers,
    topic       text COLLATE "C" NOT NULL,
    partition   integer NOT NULL,
    epoch       bigint NOT NULL,
    UNIQUE (consumer_id, topic, partition)
) WITH (fillfactor = 50);
COMMENT ON COLUMN pawl.partition_fences.epoch IS
    'owner_epoch of the register, as it was raised last; only its holder finishes messages.';

-- What is known of messages above the stored offset. A row goes once the offset has passed it.
CREATE TABLE pawl.messages_ahead (
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
COMMENT ON COLUMN pawl.messages_ahead.outcome IS
    'How the message ended: applied, duplicate, skipped, unchecked, dead or parked; NULL: it is tried again.';
COMMENT ON COLUMN pawl.messages_ahead.digest IS
    'Of time, key and value: offsets are used again after a truncation of the log.';

-- Raises the epoch of the partition's fence, under the lock of the register's row, and returns its number.
CREATE FUNCTION pawl.raise_fence(p_consumer_id integer, p_topic text, p_partition integer, p_epoch bigint)
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
    -- 'pawf' in ASCII: the class of these locks. Waits for who is about to commit, up to lock_timeout.
    PERFORM pg_advisory_xact_lock(1885435750, fence);
    UPDATE pawl.partition_fences f SET epoch = p_epoch WHERE f.fence_id = fence;
    -- The register's row was made anew: what was known belonged to another one.
    IF p_epoch = 1 THEN
        DELETE FROM pawl.messages_ahead a WHERE a.fence_id = fence;
    END IF;
    RETURN fence;
END
$$;

-- Says why a message must not be finished ahead of the stored offset, always by raising: an INSERT of no row would not
-- stop the COMMIT that was sent behind it.
CREATE FUNCTION pawl.refuse_finish(p_fence pawl.partition_fences, p_epoch bigint, p_transaction xid8)
RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF p_transaction IS NOT NULL AND p_transaction IS DISTINCT FROM pg_current_xact_id_if_assigned() THEN
        RAISE EXCEPTION 'the transaction that claimed the key has ended before the message was finished'
            USING ERRCODE = 'PW003',
                  HINT = 'A handler must not send COMMIT, ROLLBACK or BEGIN; use savepoints (pqxx::subtransaction).';
    END IF;
    RAISE EXCEPTION 'fenced: % [%] has owner epoch %, and ours is %: acquired by another owner or changed by an operator',
                    p_fence.topic, p_fence.partition, p_fence.epoch, p_epoch
        USING ERRCODE = 'PW001';
END
$$;

CREATE FUNCTION pawl.refuse_second_finish(p_message pawl.messages_ahead)
RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'out of order: the message at offset % is finished already, as %',
                    p_message.kafka_offset, p_message.outcome
        USING ERRCODE = 'PW002';
END
$$;

-- Says why the stored offset must not pass messages: as pawl.refuse_advance, or since one of them is not finished.
CREATE FUNCTION pawl.refuse_passing(
    held pawl.processed_kafka_offsets, p_epoch bigint, p_previous bigint, p_new bigint,
    p_messages bigint, p_finished bigint)
RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    IF held.owner_epoch = p_epoch AND held.last_processed_offset = p_previous AND p_finished < p_messages THEN
        RAISE EXCEPTION 'out of order: % [%] cannot move from offset % to %: % messages, of which % are finished',
                        held.topic, held.partition, p_previous, p_new, p_messages, p_finished
            USING ERRCODE = 'PW002';
    END IF;
    RETURN pawl.refuse_advance(held, p_epoch, p_previous, p_new, NULL);
END
$$;

-- As before, and raises the fence: who acquires waits for what is about to be finished, and is told by
-- pawl.messages_ahead what was. (What it returns has changed, so it is made anew.)
DROP FUNCTION pawl.acquire(integer, text, integer, text, integer, timestamptz);
CREATE FUNCTION pawl.acquire(
    p_consumer_id integer, p_topic text, p_partition integer,
    p_owner text, p_owner_pid integer, p_owner_backend_start timestamptz)
RETURNS TABLE (
    epoch bigint, stored_offset bigint, state text, halt_kind text, state_reason text,
    topic_id text, leader_epoch integer, released boolean,
    previous_owner text, previous_pid integer, previous_backend_start timestamptz, fence integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    held pawl.processed_kafka_offsets%ROWTYPE;
    raised integer;
BEGIN
    SELECT * INTO held
      FROM pawl.processed_kafka_offsets r
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    raised := pawl.raise_fence(p_consumer_id, p_topic, p_partition, held.owner_epoch + 1);
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
                        held.owner, held.owner_pid, held.owner_backend_start, raised;
END
$$;

-- As before, and raises the fence.
CREATE OR REPLACE FUNCTION pawl.operator_change(
    p_consumer_id integer, p_topic text, p_partition integer,
    p_offset bigint, p_state text, p_action text, p_reason text)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    held pawl.processed_kafka_offsets%ROWTYPE;
    fence integer;
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
    fence := pawl.raise_fence(p_consumer_id, p_topic, p_partition, held.owner_epoch + 1);
    -- A message that is left out is stored as passed by now. It may have been finished just before.
    IF p_action = 'skip' AND EXISTS (
        SELECT FROM pawl.messages_ahead a
         WHERE a.fence_id = fence AND a.kafka_offset = held.last_processed_offset AND a.outcome IS NOT NULL) THEN
        RAISE EXCEPTION 'out of order: the message at offset % of % [%] is processed already',
                        held.last_processed_offset, p_topic, p_partition
            USING ERRCODE = 'PW002';
    END IF;
    -- What is set back, or where it stands, is done again. What was finished above where it goes on stays so.
    DELETE FROM pawl.messages_ahead a
     WHERE a.fence_id = fence
       AND (a.outcome IS NULL OR a.kafka_offset <= p_offset OR p_offset <= held.last_processed_offset);
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
