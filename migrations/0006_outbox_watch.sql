-- Who looks how long messages of the outbox wait, and what retention removes of those that were given up.

-- One process looks for all, so that one alert is sent: whoever has the lease. One that sends alerts takes it
-- from one that only writes a log.
CREATE TABLE pawl.outbox_watch (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    holder      text,
    alerts      boolean NOT NULL DEFAULT false,
    lease_until timestamptz,
    told        text NOT NULL DEFAULT 'nothing' CHECK (told IN ('nothing', 'logged', 'alerted'))
) WITH (fillfactor = 20);
COMMENT ON COLUMN pawl.outbox_watch.told IS
    'How it was told that messages wait for too long; nothing: it was not, or that they no longer do was told too.';
INSERT INTO pawl.outbox_watch DEFAULT VALUES;

-- Since when the first message of a lane waits. By its number: the time of a lower one is later by no more than
-- its transaction took, and the smallest time of millions would be a walk through all of them.
CREATE FUNCTION pawl.outbox_oldest(p_lane integer)
RETURNS timestamptz
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
BEGIN
    RETURN (SELECT o.created_at FROM pawl.outbox o WHERE o.lane = p_lane ORDER BY o.outbox_id LIMIT 1);
END
$$;

-- How many messages of a lane wait, counted up to p_most. By the index: a bitmap would take in all of the lane,
-- and of a table that grew a moment ago the planner knows little.
CREATE FUNCTION pawl.outbox_waiting(p_lane integer, p_most bigint)
RETURNS bigint
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
BEGIN
    RETURN (SELECT count(*) FROM (SELECT FROM pawl.outbox o WHERE o.lane = p_lane LIMIT p_most) w);
END
$$;

-- No row: another process looks.
CREATE FUNCTION pawl.watch_outbox(p_holder text, p_alerts boolean, p_lease_ms bigint)
RETURNS TABLE (told text, oldest timestamptz, seen_at timestamptz, relayed boolean)
LANGUAGE plpgsql AS $$
DECLARE
    found_oldest timestamptz;
BEGIN
    IF NOT EXISTS (SELECT FROM pawl.outbox_watch w
                    WHERE w.holder = p_holder OR w.lease_until IS NULL OR w.lease_until < clock_timestamp()
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
            OR p_alerts AND NOT w.alerts
        RETURNING w.told, found_oldest, clock_timestamp(),
                  EXISTS (SELECT FROM pawl.outbox_lanes l
                           WHERE l.owner IS NOT NULL AND l.lease_until >= clock_timestamp());
END
$$;

-- What retention looks for.
CREATE INDEX outbox_failed_discarded ON pawl.outbox_failed (resolved_at) WHERE status = 'discarded';
