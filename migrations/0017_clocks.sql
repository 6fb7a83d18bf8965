-- The server's clock may go back. A lease that lasts longer than any can was given before that, and would stay with its
-- holder, dead or not, until the clock has caught up: from two leases ahead on it counts as over. A relay that is seen
-- in the future is counted once it is seen again.

-- As before, otherwise.
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
    SELECT count(*) INTO relays FROM pawl.outbox_relays r WHERE r.seen_at > now_at - lease AND r.seen_at < now_at + lease;
    SELECT count(*) INTO lanes FROM pawl.outbox_lanes;
    room := ceil(lanes::numeric / greatest(relays, 1)) - cardinality(held);
END
$$;

-- As before, otherwise.
CREATE OR REPLACE FUNCTION pawl.take_outbox_lane(p_owner text, p_lease_ms bigint, p_kafka_cluster_id text)
RETURNS TABLE (lane integer, epoch bigint, batch_number bigint, batch_token text, batch_rows integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    free pawl.outbox_lanes%ROWTYPE;
BEGIN
    SELECT * INTO free FROM pawl.outbox_lanes l
     WHERE (l.owner IS NULL OR l.lease_until < clock_timestamp()
            OR l.lease_until > clock_timestamp() + 2 * make_interval(secs => p_lease_ms / 1000.0))
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

-- As before, otherwise.
CREATE OR REPLACE FUNCTION pawl.watch_outbox(p_holder text, p_alerts boolean, p_lease_ms bigint)
RETURNS TABLE (told text, oldest timestamptz, seen_at timestamptz, relayed boolean)
LANGUAGE plpgsql AS $$
DECLARE
    found_oldest timestamptz;
BEGIN
    IF NOT EXISTS (SELECT FROM pawl.outbox_watch w
                    WHERE w.holder = p_holder OR w.lease_until IS NULL OR w.lease_until < clock_timestamp()
                       OR w.lease_until > clock_timestamp() + greatest(2 * make_interval(secs => p_lease_ms / 1000.0), '10 min')
                       OR p_alerts AND NOT w.alerts) THEN
        RETURN;
    END IF;
    -- Before the row is locked, which others must not wait for.
    SELECT min(pawl.outbox_oldest(l.lane)) INTO found_oldest FROM pawl.outbox_lanes l;
    RETURN QUERY
        UPDATE pawl.outbox_watch w
           SET holder = p_holder, alerts = p_alerts,
               lease_until = clock_timestamp() + make_interval(secs => p_lease_ms / 1000.0)
         WHERE w.holder = p_holder OR w.lease_until IS NULL OR w.lease_until < clock_timestamp()
            OR w.lease_until > clock_timestamp() + greatest(2 * make_interval(secs => p_lease_ms / 1000.0), '10 min')
            OR p_alerts AND NOT w.alerts
        RETURNING w.told, found_oldest, clock_timestamp(),
                  EXISTS (SELECT FROM pawl.outbox_lanes l
                           WHERE l.owner IS NOT NULL AND l.lease_until >= clock_timestamp());
END
$$;
