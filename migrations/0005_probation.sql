-- Messages and fetches that may crash processes (docs/failures.md, crash isolation).

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
COMMENT ON TABLE pawl.suspects IS
    'Messages on probation: they were in flight when a process crashed, so each runs alone. At most one row per partition.';
COMMENT ON COLUMN pawl.suspects.consumer_id IS 'The consumer (pawl.consumers).';
COMMENT ON COLUMN pawl.suspects.topic IS 'The topic.';
COMMENT ON COLUMN pawl.suspects.partition IS 'The partition.';
COMMENT ON COLUMN pawl.suspects.kafka_offset IS 'Offset of the message.';
COMMENT ON COLUMN pawl.suspects.crashes IS 'Processes that crashed while they ran this message alone.';
COMMENT ON COLUMN pawl.suspects.marked_by IS 'Process that runs the message alone now. NULL: none does.';
COMMENT ON COLUMN pawl.suspects.marked_pid IS
    'Server process of that process''s session: without it, the process has ended.';
COMMENT ON COLUMN pawl.suspects.marked_backend_start IS
    'backend_start of that session, because server process IDs are reused.';
COMMENT ON COLUMN pawl.suspects.marked_at IS 'When the row was first written for the partition.';

-- Writes the mark of p_owner, and returns how many processes have crashed at this message while their mark was stored. A mark
-- whose session still exists is not a crash: its process was only fenced. NULL: the partition has another owner meanwhile.
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

CREATE TABLE pawl.first_fetches (
    consumer_id   integer NOT NULL REFERENCES pawl.consumers,
    topic         text COLLATE "C" NOT NULL,
    partition     integer NOT NULL,
    started_epoch bigint,
    kafka_offset  bigint,
    crashes       integer NOT NULL DEFAULT 0,
    fetched_by    text,
    PRIMARY KEY (consumer_id, topic, partition)
);
COMMENT ON TABLE pawl.first_fetches IS
    'Partitions whose first fetch after an acquire has not returned, for example because a decompressed batch needs more memory than the process has. Most partitions have no row.';
COMMENT ON COLUMN pawl.first_fetches.consumer_id IS 'The consumer (pawl.consumers).';
COMMENT ON COLUMN pawl.first_fetches.topic IS 'The topic.';
COMMENT ON COLUMN pawl.first_fetches.partition IS 'The partition.';
COMMENT ON COLUMN pawl.first_fetches.started_epoch IS
    'Owner epoch of an acquire after which a message or the end of the log has arrived. NULL: none.';
COMMENT ON COLUMN pawl.first_fetches.kafka_offset IS 'Offset that was to be fetched next.';
COMMENT ON COLUMN pawl.first_fetches.crashes IS
    'Consecutive processes that crashed while they fetched kafka_offset. It has no meaning at another offset.';
COMMENT ON COLUMN pawl.first_fetches.fetched_by IS
    'Process that fetches only this partition until a message arrives. NULL: none does.';
