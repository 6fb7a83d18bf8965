-- One definition of the order in which dead letters of a record key are resolved. Partitions can be added to a topic, and
-- then later messages of a key are in another partition, whose number says nothing about their age. So partitions are
-- ordered by their first unresolved dead letter, and dead letters of one partition by offset.

-- Each lookup below reads one entry of one of these indexes.
DROP INDEX pawl.dead_letters_by_record_key;
CREATE INDEX dead_letters_by_record_key
    ON pawl.dead_letters (consumer_id, topic, record_key_hash, partition, kafka_offset, dead_letter_id)
    WHERE status IN ('dead', 'parked');
CREATE INDEX dead_letters_by_record_key_age
    ON pawl.dead_letters (consumer_id, topic, record_key_hash, dead_letter_id)
    WHERE status IN ('dead', 'parked');

-- The dead letter of a record key that is resolved next; NULL: none of this key is unresolved. The comparisons of rows
-- begin at the key and are no equations, because then only the intended index has the wanted order: an equation would
-- let the planner walk the primary key, or the index by place, past all resolved dead letters.
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

-- The dead letter that must be resolved before this one. NULL: it is the turn of this one, it is resolved, or its
-- record key is not parked.
CREATE OR REPLACE FUNCTION pawl.letter_before(p_dead_letter_id bigint)
RETURNS bigint
LANGUAGE plpgsql STABLE
SET enable_seqscan = off AS $$
DECLARE
    first bigint;
BEGIN
    SELECT pawl.first_dead_letter(held.consumer_id, held.topic, held.record_key_hash) INTO first
      FROM pawl.dead_letters held
      JOIN pawl.parked_keys k
        ON k.consumer_id = held.consumer_id AND k.topic = held.topic AND k.record_key_hash = held.record_key_hash
     WHERE held.dead_letter_id = p_dead_letter_id AND held.status IN ('dead', 'parked');
    RETURN nullif(first, p_dead_letter_id);
END
$$;

-- Makes the first dead letter of a record key due if it waits for its turn: it has come. Each change of what waits for
-- a key ends with this, under the lock of the key's row. So no key waits for a dead letter that waits itself.
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

-- As before, and the dead letter that goes first is due.
CREATE OR REPLACE FUNCTION pawl.take_due_letter(p_dead_letter_id bigint, p_retries integer, p_next interval)
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
       OR NOT EXISTS (SELECT FROM pawl.processed_kafka_offsets r
                       WHERE r.consumer_id = held.consumer_id AND r.topic = held.topic
                         AND r.partition = held.partition AND r.state = 'running') THEN
        RETURN false;
    END IF;
    first := pawl.letter_before(p_dead_letter_id) IS NULL;
    UPDATE pawl.dead_letters d
       SET due_at = CASE WHEN first THEN clock_timestamp() + p_next ELSE 'infinity' END,
           retries = d.retries + first::integer
     WHERE d.dead_letter_id = p_dead_letter_id;
    IF NOT first THEN
        PERFORM pawl.make_first_dead_letter_due(held.consumer_id, held.topic, held.record_key_hash);
    END IF;
    RETURN first;
END
$$;

-- As before, and which dead letter of the key is due next is decided where it is decided for all.
CREATE OR REPLACE FUNCTION pawl.resolve_dead_letter(
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
           resolved_at = clock_timestamp(), due_at = NULL, replays = d.replays + (p_status = 'replayed')::integer
     WHERE d.dead_letter_id = p_dead_letter_id;
    PERFORM pawl.make_first_dead_letter_due(held.consumer_id, held.topic, held.record_key_hash);
END
$$;

-- By the index, whatever the statistics say: the plan outlives them, and a table that was empty a moment ago grows by
-- thousands of rows a second.
ALTER FUNCTION pawl.is_parked(integer, text, bytea) SET enable_seqscan = off;

-- Keys that wait for ever by now.
UPDATE pawl.dead_letters d
   SET due_at = clock_timestamp()
 WHERE d.due_at = 'infinity' AND d.status IN ('dead', 'parked')
   AND pawl.letter_before(d.dead_letter_id) IS NULL;
