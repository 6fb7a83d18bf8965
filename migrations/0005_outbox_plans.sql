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
    chosen bigint[];
    wanted bigint[];
    found_rows integer;
BEGIN
    IF p_after IS NULL THEN
        ended := ARRAY (SELECT x FROM pg_snapshot_xip(p_since) x EXCEPT SELECT x FROM pg_snapshot_xip(seen) x);
        chosen := ARRAY (
            SELECT n.outbox_id FROM (
                SELECT o.outbox_id FROM pawl.outbox o
                 WHERE o.lane::bigint = p_lane AND o.xid >= pg_snapshot_xmax(p_since)
                UNION ALL
                SELECT o.outbox_id FROM unnest(ended) e (xid)
                 CROSS JOIN LATERAL (SELECT r.outbox_id FROM pawl.outbox r
                                      WHERE r.lane::bigint = p_lane AND r.xid = e.xid OFFSET 0) o
            ) n ORDER BY n.outbox_id LIMIT p_most + 1);
    ELSE
        chosen := ARRAY (
            SELECT o.outbox_id FROM pawl.outbox o
             WHERE o.lane = p_lane AND o.outbox_id > p_after AND pg_visible_in_snapshot(o.xid, p_since)
             ORDER BY o.outbox_id LIMIT p_most + 1);
    END IF;
    found_rows := cardinality(chosen);
    IF found_rows = 0 THEN
        RETURN QUERY SELECT seen, false, NULL::bigint, NULL::text, NULL::bytea, NULL::bytea, NULL::jsonb,
                            NULL::text, NULL::boolean;
        RETURN;
    END IF;
    wanted := ARRAY (
        SELECT w.outbox_id FROM (
            SELECT o.outbox_id, row_number() OVER (ORDER BY o.outbox_id) AS place,
                   sum(coalesce(octet_length(o.record_key), 0) + coalesce(octet_length(o.record_value), 0)
                       + coalesce(octet_length(o.headers::text), 0))
                       OVER (ORDER BY o.outbox_id) AS bytes
              FROM unnest(chosen[:p_most]) c (id)
             CROSS JOIN LATERAL (SELECT r.* FROM pawl.outbox r
                                  WHERE r.lane = p_lane AND r.outbox_id = c.id OFFSET 0) o) w
         WHERE w.bytes <= p_bytes OR w.place = 1);
    RETURN QUERY
        SELECT seen, cardinality(wanted) < found_rows, o.outbox_id, o.topic, o.record_key, o.record_value,
               o.headers, o.event_id,
               o.record_key IS NOT NULL AND EXISTS (
                   SELECT FROM pawl.outbox_failed f
                    WHERE f.topic = o.topic AND sha256(f.record_key) = sha256(o.record_key)
                      AND f.status <> 'discarded')
          FROM unnest(wanted) c (id)
         CROSS JOIN LATERAL (SELECT r.* FROM pawl.outbox r
                              WHERE r.lane = p_lane AND r.outbox_id = c.id OFFSET 0) o
         ORDER BY o.outbox_id;
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
               o.record_key IS NOT NULL AND EXISTS (
                   SELECT FROM pawl.outbox_failed f
                    WHERE f.topic = o.topic AND sha256(f.record_key) = sha256(o.record_key)
                      AND f.status <> 'discarded')
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
