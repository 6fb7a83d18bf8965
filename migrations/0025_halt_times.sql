-- Since when a partition is halted: a halt of another kind or for another reason is another halt.

-- As before, and each halt has its own time.
CREATE OR REPLACE FUNCTION pawl.halt(
    p_consumer_id integer, p_topic text, p_partition integer, p_epoch bigint, p_kind text, p_reason text)
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
    -- Retries and restarts meet the same halt again; it happened once.
    IF held.state = 'halted' AND held.halt_kind = p_kind AND held.state_reason = p_reason THEN
        RETURN true;
    END IF;
    UPDATE pawl.processed_kafka_offsets r
       SET state = 'halted', halt_kind = p_kind, state_reason = p_reason, state_since = clock_timestamp()
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition;
    INSERT INTO pawl.offset_history (consumer_id, topic, partition, action, from_offset, to_offset, reason)
    VALUES (p_consumer_id, p_topic, p_partition, 'halt', held.last_processed_offset,
            held.last_processed_offset, p_reason);
    RETURN true;
END
$$;
