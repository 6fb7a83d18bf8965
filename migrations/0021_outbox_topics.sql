-- pawl: stop-programs
-- What keeps one message from being published keeps no other one. A program from before this migration would not know
-- of pawl.abandon_outbox_batch, by which a batch gives back what it cannot publish.

-- As before, otherwise. Kafka lets no program write to its own topics, and fails the whole transaction for one record.
CREATE OR REPLACE FUNCTION pawl.publish(
    topic text, key bytea, value bytea, headers jsonb DEFAULT NULL, event_id text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    settings pawl.outbox_settings%ROWTYPE;
    stored jsonb := pawl.outbox_headers(headers);
    id text := coalesce(event_id, pawl.next_event_id());
    bytes bigint := coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0)
                    + coalesce(octet_length(stored::text), 0);
    number bigint;
BEGIN
    IF topic IS NULL OR topic !~ '^[a-zA-Z0-9._-]{1,249}$' OR topic IN ('.', '..') THEN
        RAISE EXCEPTION 'pawl.publish: % is no name of a Kafka topic', coalesce(quote_literal(left(topic, 300)), 'NULL')
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'It has 1 to 249 letters, digits, dots, underscores and hyphens.';
    ELSIF starts_with(topic, '__') THEN
        RAISE EXCEPTION 'pawl.publish: topic % is internal to Kafka, to which no program can publish', topic
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'Names that begin with two underscores are those of internal topics; give another topic.';
    ELSIF id = '' OR octet_length(id) > 1000 THEN
        RAISE EXCEPTION 'pawl.publish: an event_id has 1 to 1000 bytes, not %', octet_length(id)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Leave it out and it is made.';
    END IF;
    SELECT * INTO STRICT settings FROM pawl.outbox_settings;
    IF bytes > settings.max_message THEN
        RAISE EXCEPTION 'pawl.publish: key, value and headers have % bytes, more than %', bytes, settings.max_message
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'Raise outbox.max_message of whoever relays, and max.message.bytes of the topic.';
    END IF;
    number := nextval('pawl.outbox_outbox_id_seq');
    -- A trace makes nothing too long that was not so without it, so it is not counted.
    INSERT INTO pawl.outbox (outbox_id, lane, topic, record_key, record_value, headers, event_id)
    VALUES (number,
            CASE WHEN key IS NULL THEN number % settings.lanes
                 ELSE get_byte(sha256(convert_to(topic, 'UTF8') || '\x00'::bytea || key), 0) % settings.lanes END,
            topic, key, value, pawl.traced_headers(stored), id);
    RETURN id;
END
$$;

-- Kafka does not have the batch, and never will: its rows are rows like all others again, whatever the next batch
-- holds, and whether they are still there.
CREATE FUNCTION pawl.abandon_outbox_batch(p_lane integer, p_epoch bigint, p_token text)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    held pawl.outbox_lanes%ROWTYPE := pawl.require_outbox_lane(p_lane, p_epoch);
BEGIN
    IF held.batch_token IS DISTINCT FROM p_token THEN
        RAISE EXCEPTION 'out of order: outbox lane % has another batch than the one that is abandoned', p_lane
            USING ERRCODE = 'PW002';
    END IF;
    UPDATE pawl.outbox_lanes l SET batch_ids = '{}' WHERE l.lane = p_lane;
END
$$;

-- What an owner of the lane left behind is found among its rows.
DROP FUNCTION pawl.outbox_batch(integer);
