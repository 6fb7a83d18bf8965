-- A letter is taken only while its partition runs: who pauses one to mend data has no handler run under his hands, but
-- for the one that runs already.

-- As before, otherwise.
CREATE OR REPLACE FUNCTION pawl.take_due_letter(p_dead_letter_id bigint, p_retries integer, p_next interval)
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
    RETURN first;
END
$$;
