-- Each look at the outbox goes over its rows once, where it went over them three times: which, how large, and what
-- stands in them.
--
-- What reads the outbox finds its rows by the whole of an index' key, whatever PostgreSQL believes of the table's size.
--
-- The outbox is nearly empty each time when it is analysed or vacuumed. By such numbers all ways cost the same, and
-- some went over all of a lane by half of a key ("lane = 1", with the rest as a filter). Beside a transaction that stays
-- open nothing is vacuumed, so that was all that had been published since, for each look: 500 ms and growing after a
-- minute of 8,000 rows a second.
--
-- So each index has a first column that no other one has, and what could go in another order is written as a loop over
-- a subquery with OFFSET 0, which PostgreSQL takes as it stands.

DROP INDEX pawl.outbox_by_transaction;
CREATE INDEX outbox_by_transaction ON pawl.outbox ((lane::bigint), xid);

CREATE FUNCTION pawl.outbox_row_bytes(p_key bytea, p_value bytea, p_headers jsonb)
RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(octet_length(p_key), 0)::bigint + coalesce(octet_length(p_value), 0)
           + coalesce(octet_length(p_headers::text), 0)
$$;

-- Whether an earlier message of the topic and key is set apart, so that this one has to wait.
CREATE FUNCTION pawl.is_outbox_key_apart(p_topic text, p_key bytea)
RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT p_key IS NOT NULL AND EXISTS (
        SELECT FROM pawl.outbox_failed f
         WHERE f.topic = p_topic AND sha256(f.record_key) = sha256(p_key) AND f.status <> 'discarded')
$$;

-- A lane's rows of one statement's snapshot (`seen`, also without rows), by their numbers, up to p_most
-- rows and p_bytes of keys, values and headers (one row at least). `more`, in the last row: there are
-- others behind it. Which:
--   p_after NULL: what has become visible since the snapshot p_since, whatever its number;
--   else: what p_since saw, above p_after.
-- So a first page with p_after, and the pages behind it, see one moment of the table, and what comes
-- later is found by the other way as a whole. Pages of a moving table would publish a message of a key
-- before an earlier one whose transaction had its number already and committed in between.
--
-- Transactions that were under way in p_since and still are have nothing to show, so their rows, which
-- may be millions, are not looked at.
--
-- The two ways differ in the innermost query only; as one, with an OR, neither would use its index.
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
               any_apart AND pawl.is_outbox_key_apart(p.topic, p.record_key)
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
               any_apart AND pawl.is_outbox_key_apart(p.topic, p.record_key)
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

CREATE OR REPLACE FUNCTION pawl.outbox_batch(p_lane integer)
RETURNS TABLE (outbox_id bigint, topic text, record_key bytea, record_value bytea, headers jsonb, event_id text,
               held boolean)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT o.outbox_id, o.topic, o.record_key, o.record_value, o.headers, o.event_id,
               pawl.is_outbox_key_apart(o.topic, o.record_key)
          FROM pawl.outbox_lanes l
         CROSS JOIN unnest(l.batch_ids) c (id)
         CROSS JOIN LATERAL (SELECT r.* FROM pawl.outbox r
                              WHERE r.lane = p_lane AND r.outbox_id = c.id OFFSET 0) o
         WHERE l.lane = p_lane
         ORDER BY o.outbox_id;
END
$$;

-- A row of the outbox is never changed and, while its lane is locked, deleted by nobody else: its place is its own.
CREATE OR REPLACE FUNCTION pawl.end_outbox_batch(p_lane integer, p_epoch bigint, p_token text)
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    held pawl.outbox_lanes%ROWTYPE := pawl.require_outbox_lane(p_lane, p_epoch);
BEGIN
    IF held.batch_token IS DISTINCT FROM p_token THEN
        RAISE EXCEPTION 'out of order: outbox lane % has another batch than the one that ended', p_lane
            USING ERRCODE = 'PW002';
    END IF;
    DELETE FROM pawl.outbox o WHERE o.ctid = ANY (ARRAY (
        SELECT f.ctid FROM unnest(held.batch_ids) c (id)
         CROSS JOIN LATERAL (SELECT r.ctid FROM pawl.outbox r
                              WHERE r.lane = p_lane AND r.outbox_id = c.id OFFSET 0) f));
    UPDATE pawl.outbox_lanes l
       SET batch_ids = '{}', published_count = l.published_count + cardinality(held.batch_ids),
           published_at = clock_timestamp()
     WHERE l.lane = p_lane;
END
$$;

CREATE OR REPLACE FUNCTION pawl.fail_outbox_rows(
    p_lane integer, p_epoch bigint, p_ids bigint[], p_status text, p_reason text)
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    held pawl.outbox_lanes%ROWTYPE := pawl.require_outbox_lane(p_lane, p_epoch);
BEGIN
    WITH gone AS (
        DELETE FROM pawl.outbox o WHERE o.ctid = ANY (ARRAY (
            SELECT f.ctid FROM unnest(p_ids) c (id)
             CROSS JOIN LATERAL (SELECT r.ctid FROM pawl.outbox r
                                  WHERE r.lane = p_lane AND r.outbox_id = c.id OFFSET 0) f))
        RETURNING o.*)
    INSERT INTO pawl.outbox_failed (outbox_id, lane, topic, record_key, record_value, headers, event_id,
                                    created_at, status, reason)
    SELECT g.outbox_id, g.lane, g.topic, g.record_key, g.record_value, g.headers, g.event_id,
           g.created_at, p_status, p_reason
      FROM gone g;
    IF held.batch_ids && p_ids THEN
        UPDATE pawl.outbox_lanes l
           SET batch_ids = ARRAY (SELECT b FROM unnest(held.batch_ids) b WHERE b <> ALL (p_ids) ORDER BY b)
         WHERE l.lane = p_lane;
    END IF;
END
$$;

-- Takes one lane that nobody has. Its new epoch makes whatever an earlier owner still does there fail.
CREATE OR REPLACE FUNCTION pawl.take_outbox_lane(p_owner text, p_lease_ms bigint, p_kafka_cluster_id text)
RETURNS TABLE (lane integer, epoch bigint, batch_number bigint, batch_token text, batch_rows integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    free pawl.outbox_lanes%ROWTYPE;
BEGIN
    SELECT * INTO free FROM pawl.outbox_lanes l
     WHERE (l.owner IS NULL OR l.lease_until < clock_timestamp())
     ORDER BY l.lane LIMIT 1
       FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    ELSIF free.kafka_cluster_id <> p_kafka_cluster_id THEN
        RAISE EXCEPTION 'the outbox of this database is published into Kafka cluster %, and this is %',
                        free.kafka_cluster_id, p_kafka_cluster_id
            USING ERRCODE = 'PW012',
                  HINT = 'Point kafka.bootstrap_servers to that cluster. If it is gone for good: UPDATE pawl.outbox_lanes SET kafka_cluster_id = NULL.';
    ELSIF (SELECT s.seqcache FROM pg_sequence s WHERE s.seqrelid = 'pawl.outbox_outbox_id_seq'::regclass) <> 1 THEN
        RAISE EXCEPTION 'pawl.outbox_outbox_id_seq hands out numbers in blocks, which breaks the order of a key''s messages'
            USING ERRCODE = 'PW012', HINT = 'ALTER SEQUENCE pawl.outbox_outbox_id_seq CACHE 1';
    END IF;
    -- Rows of a dump, or of another server, name transactions of that one, which are none here yet: they would be
    -- found behind what is written now. This transaction is theirs then.
    WITH foreign_rows AS (
        DELETE FROM pawl.outbox o
         WHERE o.lane::bigint = free.lane AND o.xid >= pg_snapshot_xmax(pg_current_snapshot())
        RETURNING o.*)
    INSERT INTO pawl.outbox (outbox_id, lane, topic, record_key, record_value, headers, event_id, created_at)
    SELECT r.outbox_id, r.lane, r.topic, r.record_key, r.record_value, r.headers, r.event_id, r.created_at
      FROM foreign_rows r;
    RETURN QUERY UPDATE pawl.outbox_lanes l
       SET owner = p_owner, epoch = free.epoch + 1, acquired_at = clock_timestamp(),
           lease_until = clock_timestamp() + make_interval(secs => p_lease_ms / 1000.0),
           kafka_cluster_id = p_kafka_cluster_id
     WHERE l.lane = free.lane
    RETURNING l.lane, l.epoch, l.batch_number, l.batch_token, cardinality(l.batch_ids);
END
$$;
