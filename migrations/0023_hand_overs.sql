-- What a process leaves behind that the next one has to know, and cannot conclude from a session that has ended.

-- ---- partitions that are given back while messages of them are on probation -----------------------------

ALTER TABLE pawl.processed_kafka_offsets ADD COLUMN suspects_left boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN pawl.processed_kafka_offsets.suspects_left IS
    'If released: messages were on probation then, and the next owner goes on with that.';

-- ---- delayed retries that a process had in progress when it ended ---------------------------------------

ALTER TABLE pawl.dead_letters
    ADD COLUMN tried_alone boolean,
    ADD COLUMN tried_pid integer,
    ADD COLUMN tried_backend_start timestamptz;
COMMENT ON COLUMN pawl.dead_letters.tried_alone IS
    'Whether the delayed retry that was begun, and has no outcome yet, runs alone in its process. True also after one that was given back and is to run alone again. NULL: there is none, or a program of an older version began it.';
COMMENT ON COLUMN pawl.dead_letters.tried_pid IS
    'Server process of the session that began it: the process that retries has ended if this session has. NULL: it was begun through a pooler, or given back.';

-- As before, and stores who retries, and whether alone. p_uncounted: the retry before does not count. Programs of older
-- versions give three arguments, and do not remove what is stored: their retries are stored as they were.
DROP FUNCTION pawl.take_due_letter(bigint, integer, interval);
CREATE FUNCTION pawl.take_due_letter(
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
       -- The number does not say that another process has made the uncounted retry again.
       OR (p_uncounted AND held.tried_alone IS DISTINCT FROM false)
       OR NOT EXISTS (SELECT FROM pawl.processed_kafka_offsets r
                       WHERE r.consumer_id = held.consumer_id AND r.topic = held.topic
                         AND r.partition = held.partition AND r.state = 'running') THEN
        RETURN false;
    END IF;
    first := pawl.letter_before(p_dead_letter_id) IS NULL;
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
