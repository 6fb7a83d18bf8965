-- What operators are told of the outbox: why and by whom a message was given up beside what Kafka said of it, and what
-- keeps a process that publishes from publishing.

ALTER TABLE pawl.outbox_failed ADD COLUMN resolution text;
COMMENT ON COLUMN pawl.outbox_failed.reason IS
    'What Kafka said of it, or behind what it waits.';
COMMENT ON COLUMN pawl.outbox_failed.resolution IS
    'Why somebody gave it up; resolved_by and resolved_at say who and when.';
-- Before, the one took the place of the other.
UPDATE pawl.outbox_failed
   SET resolution = reason, reason = 'not known any more: given up before schema version 9, which keeps it'
 WHERE status = 'discarded';

ALTER TABLE pawl.outbox_relays ADD COLUMN transactions boolean, ADD COLUMN problem text;
COMMENT ON COLUMN pawl.outbox_relays.transactions IS
    'Its outbox.transactions, which is to be the same everywhere. NULL: not told.';
COMMENT ON COLUMN pawl.outbox_relays.problem IS
    'What ended its last try to publish; NULL: nothing, or one has succeeded since.';

-- Puts a row that was set apart, and all of its topic and key, back into the outbox, under their numbers
-- and so in their order; with p_discard the row itself is given up, for that reason, and the others go back
-- unless another one of them has failed. Returns how many go back; NULL: there is no such row, or it is given
-- up already.
--
-- It takes the lane away from its owner, as an operator's change of a partition does: whoever reads pages of
-- an older snapshot would publish later rows of the key first.
CREATE OR REPLACE FUNCTION pawl.retry_outbox_row(p_outbox_id bigint, p_discard text)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    apart pawl.outbox_failed%ROWTYPE;
    moved bigint;
BEGIN
    -- The lane first: its owner sets no row of the key apart meanwhile.
    PERFORM FROM pawl.outbox_lanes l JOIN pawl.outbox_failed f USING (lane)
      WHERE f.outbox_id = p_outbox_id
        FOR NO KEY UPDATE OF l;
    SELECT * INTO apart FROM pawl.outbox_failed f
     WHERE f.outbox_id = p_outbox_id AND f.status <> 'discarded'
       FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF p_discard IS NOT NULL THEN
        UPDATE pawl.outbox_failed f
           SET status = 'discarded', resolution = p_discard, resolved_at = clock_timestamp(), resolved_by = session_user
         WHERE f.outbox_id = p_outbox_id;
        PERFORM FROM pawl.outbox_failed f
          WHERE f.topic = apart.topic AND sha256(f.record_key) = sha256(apart.record_key) AND f.status = 'failed';
        IF FOUND THEN
            RETURN 0;
        END IF;
    END IF;
    WITH back AS (
        DELETE FROM pawl.outbox_failed f
         WHERE f.status <> 'discarded'
           AND (f.outbox_id = p_outbox_id
                OR f.topic = apart.topic AND sha256(f.record_key) = sha256(apart.record_key))
        RETURNING f.*)
    INSERT INTO pawl.outbox (outbox_id, lane, topic, record_key, record_value, headers, event_id, created_at)
    SELECT b.outbox_id, b.lane, b.topic, b.record_key, b.record_value, b.headers, b.event_id, b.created_at
      FROM back b;
    GET DIAGNOSTICS moved = ROW_COUNT;
    UPDATE pawl.outbox_lanes l SET epoch = l.epoch + 1, owner = NULL, lease_until = NULL WHERE l.lane = apart.lane;
    RETURN moved;
END
$$;
