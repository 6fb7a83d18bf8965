-- pawl: stop-programs
-- What is asked per message or periodically about a table that grows is asked by an index, whatever the statistics say. A
-- plan outlives the statistics that it was made by: one that was made while a table was empty reads the whole table until
-- PostgreSQL analyzes it. So these statements are functions with settings of their own. Each comparison of rows leaves
-- only one index that has the wanted order; by statistics of an empty table all indexes cost the same. A dead letter whose
-- number is known is not asked for by what indexes of unresolved ones have as their condition: one of these would be read
-- instead, because it was small.

-- Stores a message as a dead letter or parked, and returns its number. A position that was set back meets its dead letters
-- again: what is unresolved is updated. Another message may have the offset (a topic made anew, a log that was cut and has
-- grown again): it is another dead letter. A message that is only parked again changes nothing of what is known of it.
-- Two owners that both find none cannot both commit: the register's advance is behind.
CREATE FUNCTION pawl.bury(
    p_consumer_id integer, p_topic text, p_topic_id text, p_partition integer, p_offset bigint,
    p_leader_epoch integer, p_timestamp_ms bigint, p_status text, p_reason text, p_handler text,
    p_idempotency_key text, p_sqlstate text, p_error text, p_error_detail text, p_attempts integer,
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
            reason, handler, idempotency_key, sqlstate, error, error_detail, attempts, record_key,
            record_key_hash, record_value, value_bytes, headers, payload, message_digest)
    VALUES (p_consumer_id, p_topic, p_topic_id, p_partition, p_offset, p_leader_epoch, p_timestamp_ms, p_status,
            p_reason, p_handler, p_idempotency_key, p_sqlstate, p_error, p_error_detail, p_attempts, p_record_key,
            p_record_key_hash, p_record_value, p_value_bytes, p_headers, p_payload, p_message_digest)
    RETURNING dead_letter_id INTO known;
    RETURN known;
END
$$;
COMMENT ON FUNCTION pawl.bury IS 'Stores a message as a dead letter, or parked behind one.';

-- Makes what pawl.bury stored for a message due: after p_retry_after_ms, or, parked (NULL), when its turn comes. A dead
-- letter that was dead or waited before, and is only parked again, keeps what it has. A parked one whose position was set
-- back may be the first of its key: nothing that it waits for would make it due.
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
                             WHEN pawl.letter_before(d.dead_letter_id) IS NULL THEN clock_timestamp()
                             ELSE 'infinity' END,
               retries = CASE WHEN p_retry_after_ms IS NULL THEN -1 ELSE 0 END
         WHERE d.dead_letter_id = chosen
           AND (d.status = 'dead' AND p_retry_after_ms IS NOT NULL OR d.status = 'parked' AND d.due_at IS NULL);
    END LOOP;
END
$$;

-- The place, from 0, of the first of these record keys that is parked; NULL: none is.
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

-- As before, but by the one look-up that all share.
CREATE OR REPLACE FUNCTION pawl.is_parked(p_consumer_id integer, p_topic text, p_record_key bytea)
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

-- As before. One table after the other: as a join it could begin at any index that holds the number of a dead letter
-- among other columns, and read all of it.
CREATE OR REPLACE FUNCTION pawl.letter_before(p_dead_letter_id bigint)
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

-- Locks the record key of a dead letter if it is parked.
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

-- An idempotency key that is stored.
CREATE FUNCTION pawl.stored_key(p_scope_id integer, p_key text)
RETURNS SETOF pawl.idempotency_keys
LANGUAGE plpgsql STABLE
SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY SELECT * FROM pawl.idempotency_keys k WHERE k.scope_id = p_scope_id AND k.key = p_key;
END
$$;

-- Whether a message above the stored offset is finished.
CREATE FUNCTION pawl.is_finished(p_fence integer, p_offset bigint)
RETURNS boolean
LANGUAGE plpgsql STABLE
SET enable_seqscan = off AS $$
BEGIN
    PERFORM FROM pawl.messages_ahead a
      WHERE a.fence_id = p_fence AND a.kafka_offset = p_offset AND a.outcome IS NOT NULL;
    RETURN FOUND;
END
$$;

-- As before, otherwise.
CREATE OR REPLACE FUNCTION pawl.require_predecessor(p_fence integer, p_offset bigint)
RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN pawl.is_finished(p_fence, p_offset)
                  OR EXISTS (SELECT FROM pawl.partition_fences f
                               JOIN pawl.processed_kafka_offsets r USING (consumer_id, topic, partition)
                              WHERE f.fence_id = p_fence AND r.last_processed_offset >= p_offset)
                THEN true
                ELSE pawl.refuse_predecessor(p_fence, p_offset) END
$$;

-- Deletes what is known of messages above p_after up to p_upto, and returns it. What is below was deleted before, and is
-- gone over again and again while some transaction keeps it from being vacuumed.
CREATE FUNCTION pawl.pass_messages_ahead(p_fence integer, p_after bigint, p_upto bigint)
RETURNS TABLE (outcome text)
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY
        DELETE FROM pawl.messages_ahead a
         WHERE a.fence_id = p_fence AND a.kafka_offset > p_after AND a.kafka_offset <= p_upto
        RETURNING a.outcome;
END
$$;

-- ---- what commands read ----------------------------------------------------------------------------------

-- `audit` reads these records partition by partition.
CREATE INDEX skipped_messages_by_place ON pawl.skipped_messages (consumer_id, topic, partition, kafka_offset);

-- Dead letters that hold back retention: the oldest of a topic is read for each scope and pass.
CREATE INDEX dead_letters_without_key ON pawl.dead_letters (consumer_id, topic)
    WHERE idempotency_key IS NULL AND status IN ('dead', 'parked');
ALTER FUNCTION pawl.prune_cutoff(integer, bigint, timestamptz, boolean, integer[], integer[], bigint[], text[])
    SET enable_seqscan = off SET jit = off;
