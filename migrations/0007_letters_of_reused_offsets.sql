-- Dead letters where an offset is used again: a topic was made anew, a log was cut and has grown again,
-- or an operator has set a partition back. docs/failures.md says what is kept, docs/design.md why.

-- pawl: stop-programs
-- Programs of before store dead letters with an ON CONFLICT that finds no index any more.

ALTER TABLE pawl.dead_letters ADD COLUMN message_digest bytea;
COMMENT ON COLUMN pawl.dead_letters.message_digest IS
    'SHA-256 over time, key, value and headers of the message. NULL: stored by an older version, or erased.';

-- A message is dead once, however often its partition is set back; another message that has its offset
-- is another letter. The statements that store letters see to that, also for letters without digest;
-- this index only decides races between them.
DROP INDEX pawl.dead_letters_unresolved;
CREATE UNIQUE INDEX dead_letters_unresolved
    ON pawl.dead_letters (consumer_id, topic, partition, kafka_offset, coalesce(topic_id, ''), message_digest)
    WHERE status IN ('dead', 'parked');

-- As pawl.idempotency_keys has it: under another collation an index cannot find one by the other. This
-- rebuilds the index dead_letters_by_idempotency_key, and not the table.
ALTER TABLE pawl.dead_letters ALTER COLUMN idempotency_key TYPE text COLLATE "C";

-- As before, but for two things. Among letters of one offset the one that was stored first goes first.
-- And the record key's row is written, not only locked: a claim under REPEATABLE READ or SERIALIZABLE
-- whose snapshot is older than this resolution would else get the lock, and judge by letters of the past.
-- Now it fails with 40001 and begins anew.
CREATE OR REPLACE FUNCTION pawl.resolve_dead_letter(
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
