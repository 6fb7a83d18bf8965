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

-- Among them is what stands before a message of its key that was set apart since: only what stands behind that one waits.
CREATE FUNCTION pawl.is_outbox_key_apart(p_topic text, p_key bytea, p_outbox_id bigint)
RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT p_key IS NOT NULL AND EXISTS (
        SELECT FROM pawl.outbox_failed f
         WHERE f.topic = p_topic AND sha256(f.record_key) = sha256(p_key) AND f.status <> 'discarded'
           AND f.outbox_id < p_outbox_id)
$$;

-- As before, otherwise.
CREATE OR REPLACE FUNCTION pawl.next_outbox_rows(
    p_lane integer, p_after bigint, p_since pg_snapshot, p_most integer, p_bytes bigint)
RETURNS TABLE (seen pg_snapshot, more boolean, outbox_id bigint, topic text, record_key bytea,
               record_value bytea, headers jsonb, event_id text, held boolean)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    seen pg_snapshot := pg_current_snapshot();
    ended xid8[];
    -- Almost never, and then no row has to be asked about.
    any_apart boolean := EXISTS (SELECT FROM pawl.outbox_failed f WHERE f.status <> 'discarded');
BEGIN
    IF p_after IS NULL THEN
        ended := ARRAY (SELECT x FROM pg_snapshot_xip(p_since) x EXCEPT SELECT x FROM pg_snapshot_xip(seen) x);
        RETURN QUERY
        SELECT seen, p.place < p.found, p.outbox_id, p.topic, p.record_key, p.record_value, p.headers, p.event_id,
               any_apart AND pawl.is_outbox_key_apart(p.topic, p.record_key, p.outbox_id)
          FROM (SELECT n.*, row_number() OVER w AS place, count(*) OVER () AS found,
                       sum(pawl.outbox_row_bytes(n.record_key, n.record_value, n.headers)) OVER w AS bytes
                  FROM (SELECT o.* FROM pawl.outbox o
                         WHERE o.lane::bigint = p_lane AND o.xid >= pg_snapshot_xmax(p_since)
                        UNION ALL
                        SELECT o.* FROM unnest(ended) e (xid)
                         CROSS JOIN LATERAL (SELECT r.* FROM pawl.outbox r
                                              WHERE r.lane::bigint = p_lane AND r.xid = e.xid OFFSET 0) o
                        ORDER BY outbox_id LIMIT p_most + 1) n
                WINDOW w AS (ORDER BY n.outbox_id ROWS UNBOUNDED PRECEDING)) p
         WHERE p.place <= p_most AND (p.bytes <= p_bytes OR p.place = 1)
         ORDER BY p.outbox_id;
    ELSE
        RETURN QUERY
        SELECT seen, p.place < p.found, p.outbox_id, p.topic, p.record_key, p.record_value, p.headers, p.event_id,
               any_apart AND pawl.is_outbox_key_apart(p.topic, p.record_key, p.outbox_id)
          FROM (SELECT n.*, row_number() OVER w AS place, count(*) OVER () AS found,
                       sum(pawl.outbox_row_bytes(n.record_key, n.record_value, n.headers)) OVER w AS bytes
                  FROM (SELECT o.* FROM pawl.outbox o
                         WHERE o.lane = p_lane AND o.outbox_id > p_after AND pg_visible_in_snapshot(o.xid, p_since)
                         ORDER BY o.outbox_id LIMIT p_most + 1) n
                WINDOW w AS (ORDER BY n.outbox_id ROWS UNBOUNDED PRECEDING)) p
         WHERE p.place <= p_most AND (p.bytes <= p_bytes OR p.place = 1)
         ORDER BY p.outbox_id;
    END IF;
    IF NOT FOUND THEN
        RETURN QUERY SELECT seen, false, NULL::bigint, NULL::text, NULL::bytea, NULL::bytea, NULL::jsonb,
                            NULL::text, NULL::boolean;
    END IF;
END
$$;

DROP FUNCTION pawl.is_outbox_key_apart(text, bytea);

COMMENT ON COLUMN pawl.outbox_relays.problem IS
    'Why it cannot publish; NULL: it can, or does not know yet. It counts for nobody''s share of the lanes meanwhile.';

-- As before, otherwise. A process that tells that it cannot publish is left out of the others' shares.
CREATE OR REPLACE FUNCTION pawl.keep_outbox_lanes(
    p_owner text, p_lanes integer[], p_epochs bigint[], p_lease_ms bigint,
    OUT held integer[], OUT room integer)
LANGUAGE plpgsql AS $$
DECLARE
    now_at timestamptz := clock_timestamp();
    lease interval := make_interval(secs => p_lease_ms / 1000.0);
    relays bigint;
    lanes bigint;
BEGIN
    INSERT INTO pawl.outbox_relays AS r (owner, seen_at) VALUES (p_owner, now_at)
    ON CONFLICT (owner) DO UPDATE SET seen_at = excluded.seen_at;
    DELETE FROM pawl.outbox_relays r WHERE r.seen_at < now_at - 10 * lease OR r.seen_at > now_at + 10 * lease;
    WITH mine AS (
        SELECT l.lane FROM pawl.outbox_lanes l JOIN unnest(p_lanes, p_epochs) AS h (lane, epoch) USING (lane, epoch)
         ORDER BY l.lane FOR NO KEY UPDATE OF l),
    extended AS (
        UPDATE pawl.outbox_lanes l SET lease_until = clock_timestamp() + lease
          FROM mine WHERE l.lane = mine.lane RETURNING l.lane)
    SELECT coalesce(array_agg(e.lane), '{}') INTO held FROM extended e;
    SELECT count(*) INTO relays FROM pawl.outbox_relays r
     WHERE r.seen_at > now_at - lease AND r.seen_at < now_at + lease AND (r.owner = p_owner OR r.problem IS NULL);
    SELECT count(*) INTO lanes FROM pawl.outbox_lanes;
    room := ceil(lanes::numeric / greatest(relays, 1)) - cardinality(held);
END
$$;

-- ---- topic partitions that cannot be written to --------------------------------------------------------

ALTER TABLE pawl.outbox_relays ADD COLUMN left_out text;
COMMENT ON COLUMN pawl.outbox_relays.left_out IS
    'Topic partitions to which it can write nothing now, and why: their messages wait, all others are published. NULL: none.';

ALTER TABLE pawl.outbox_lanes ADD COLUMN producer bigint NOT NULL DEFAULT 0, ADD COLUMN released_epoch bigint;
COMMENT ON COLUMN pawl.outbox_lanes.producer IS
    'Number of the transactional id under which the lane is published.';
COMMENT ON COLUMN pawl.outbox_lanes.released_epoch IS
    'The last epoch behind which no producer of the transactional id lives: its owner was alone, and gave the lane back.';

-- p_alone: the owner has shut out whoever had the lane before, and its own producer has ended. Without that a producer of an
-- earlier epoch may live, whoever gives the lane back later.
DROP FUNCTION pawl.release_outbox_lane(integer, bigint);
CREATE FUNCTION pawl.release_outbox_lane(p_lane integer, p_epoch bigint, p_alone boolean)
RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pawl.outbox_lanes l
       SET owner = NULL, lease_until = NULL,
           released_epoch = CASE WHEN p_alone THEN p_epoch ELSE l.released_epoch END
     WHERE l.lane = p_lane AND l.epoch = p_epoch;
    RETURN FOUND;
END
$$;

-- A transaction that Kafka has decided ends in each of its partitions; until one without a leader has one again, Kafka
-- begins no other transaction of the same id. So the lane goes on under another id, which is safe where no producer of the
-- old one lives. Returns its number.
CREATE FUNCTION pawl.renew_outbox_producer(p_lane integer, p_epoch bigint)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    held pawl.outbox_lanes%ROWTYPE := pawl.require_outbox_lane(p_lane, p_epoch);
BEGIN
    UPDATE pawl.outbox_lanes l SET producer = held.producer + 1 WHERE l.lane = p_lane;
    RETURN held.producer + 1;
END
$$;
