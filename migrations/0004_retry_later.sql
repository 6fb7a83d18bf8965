-- Dead letters that are tried again by themselves (failures.then = "retry-later", docs/failures.md).

ALTER TABLE pawl.dead_letters
    ADD COLUMN due_at  timestamptz,
    ADD COLUMN retries integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN pawl.dead_letters.due_at IS
    'When an unresolved letter is tried again; infinity: when those before it, of its record key, are resolved. NULL: by an operator.';
COMMENT ON COLUMN pawl.dead_letters.retries IS
    'How often it was tried by itself, with a try that is under way.';

CREATE INDEX dead_letters_due ON pawl.dead_letters (consumer_id, topic, partition, due_at)
    WHERE due_at IS NOT NULL AND status IN ('dead', 'parked');

-- Takes a letter whose time has come, before its handler runs: the next time is stored first, so that a letter
-- at which processes end is not tried without end. False: it is resolved, somebody else has taken it, or another
-- letter of its record key goes first. Locks as pawl.resolve_dead_letter does.
CREATE FUNCTION pawl.take_due_letter(p_dead_letter_id bigint, p_retries integer, p_next interval)
RETURNS boolean
LANGUAGE plpgsql AS $$
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
       OR held.due_at > clock_timestamp() OR held.due_at IS NULL THEN
        RETURN false;
    END IF;
    first := pawl.letter_before(p_dead_letter_id) IS NULL;
    UPDATE pawl.dead_letters d
       SET due_at = CASE WHEN first THEN clock_timestamp() + p_next ELSE 'infinity' END,
           retries = d.retries + first::integer
     WHERE d.dead_letter_id = p_dead_letter_id;
    RETURN first;
END
$$;

-- As before, and the next letter of the record key is due where it waits for its turn.
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
           resolved_at = clock_timestamp(), due_at = NULL, replays = d.replays + (p_status = 'replayed')::integer
     WHERE d.dead_letter_id = p_dead_letter_id;
    -- Whose turn it is now: who stored it behind this one held the record key's row.
    UPDATE pawl.dead_letters d
       SET due_at = clock_timestamp()
     WHERE d.due_at = 'infinity'
       AND d.dead_letter_id =
           (SELECT n.dead_letter_id FROM pawl.dead_letters n
             WHERE n.consumer_id = held.consumer_id AND n.topic = held.topic
               AND n.record_key_hash = held.record_key_hash AND n.status IN ('dead', 'parked')
             ORDER BY n.partition, n.kafka_offset, n.dead_letter_id LIMIT 1);
END
$$;
