-- Reading the outbox goes over its rows once. It went over them three times: which, how large, and what stands in them.

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
                  FROM (SELECT o.* FROM pawl.outbox o WHERE o.lane = p_lane AND o.xid >= pg_snapshot_xmax(p_since)
                        UNION ALL
                        SELECT o.* FROM unnest(ended) e (xid) JOIN pawl.outbox o ON o.lane = p_lane AND o.xid = e.xid
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
