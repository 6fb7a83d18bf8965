-- A key vouches for every message that was found to have it, not only for the one that claimed it: each
-- renews it that came to Kafka after created_at. So a message that is younger than pruned_to was not
-- processed if its key is not there. docs/retention.md says who relies on that.

-- pawl: stop-programs
-- Programs of before renew no keys, and renewed_since below says that from now on all are.

COMMENT ON COLUMN pawl.idempotency_keys.created_at IS
    'When the key was claimed, or found again by a message that came to Kafka later than that.';

-- Keys of before this migration were not renewed: for what came to Kafka until then nobody can tell,
-- once keys are removed.
ALTER TABLE pawl.idempotency_scopes ADD COLUMN renewed_since timestamptz;
COMMENT ON COLUMN pawl.idempotency_scopes.renewed_since IS
    'Duplicates renew their keys since then; NULL: always did. pruned_to is never stored as earlier.';
UPDATE pawl.idempotency_scopes
   SET renewed_since = now(), pruned_to = CASE WHEN pruned_to IS NOT NULL THEN greatest(pruned_to, now()) END;

-- Each key once. The locks are taken in the keys' order, whatever the order of p_keys is, so that two
-- batches wait for each other instead of locking each other out. Raises when a key is gone: a removal
-- came in between, and its message is a new one.
CREATE FUNCTION pawl.renew_keys(p_scope_id integer, p_keys text[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    found_keys bigint;
BEGIN
    PERFORM FROM pawl.idempotency_keys k
      WHERE k.scope_id = p_scope_id AND k.key = ANY (p_keys)
      ORDER BY k.key COLLATE "C"
        FOR NO KEY UPDATE;
    GET DIAGNOSTICS found_keys = ROW_COUNT;
    IF found_keys <> cardinality(p_keys) THEN
        RAISE EXCEPTION 'an idempotency key was removed while it was looked at' USING ERRCODE = '40001';
    END IF;
    UPDATE pawl.idempotency_keys k SET created_at = clock_timestamp()
     WHERE k.scope_id = p_scope_id AND k.key = ANY (p_keys);
END
$$;
COMMENT ON FUNCTION pawl.renew_keys(integer, text[]) IS
    'A duplicate that came to Kafka later than its key''s time makes the key as young as itself.';

-- As pawl.known_keys, which programs of before use, and how old each key is.
CREATE FUNCTION pawl.stored_keys(p_scope_id integer, p_keys text[], p_with_responses boolean)
RETURNS TABLE (place bigint, payload_hash bigint, response bytea, created_ms bigint)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
BEGIN
    RETURN QUERY
        SELECT asked.place - 1, k.payload_hash, k.response, k.created_ms
          FROM unnest(p_keys) WITH ORDINALITY AS asked (key, place)
         CROSS JOIN LATERAL (SELECT i.payload_hash, CASE WHEN p_with_responses THEN i.response END AS response,
                                    floor(extract(epoch FROM i.created_at) * 1000)::bigint AS created_ms
                               FROM pawl.idempotency_keys i
                              WHERE i.scope_id = p_scope_id AND i.key = asked.key
                             OFFSET 0) k;
END
$$;
COMMENT ON FUNCTION pawl.stored_keys(integer, text[], boolean) IS
    'The idempotency keys of a scope that are stored already, asked for many messages at once.';

-- A record's time may be anything: producers write nanoseconds for milliseconds. Before 1970 counts as
-- 1970, older than anything that matters; what no calendar of four-digit years has is NULL.
CREATE FUNCTION pawl.record_time(p_timestamp_ms bigint)
RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_timestamp_ms < 253402300800000
                THEN to_timestamp(greatest(p_timestamp_ms, 0) / 1000.0) END
$$;

-- Up to when keys of a scope may go: p_retention_ms before the oldest message that may still come. Of
-- a partition at its log's end that is one appended after p_asked_at, of another one its next message,
-- which is no older than the last processed one. p_ends are the logs' ends as Kafka told them AFTER
-- p_asked_at; a partition that is not among them, stands behind the end, or whose topic was made anew,
-- counts as not at its end. A dead letter whose key is unknown is a message that may still come.
--
-- With p_store the scope's row is locked before the register is read, and pruned_to is stored: an
-- operator who sets a partition back (pawl.require_unpruned) does so before this reads, and holds the
-- cutoff back, or after it is stored, and is asked for --force.
--
-- cutoff NULL: nothing may go. held_by: what the cutoff depends on, NULL if every log is at its end.
-- unusable_time: a partition, not at its end, whose last record says a time that cannot be (its
-- processing counts instead); NULL if there is none.
DROP FUNCTION pawl.prune_cutoff(integer, bigint, timestamptz, boolean, integer[], integer[], bigint[], text[]);
CREATE FUNCTION pawl.prune_cutoff(
    p_scope_id integer, p_retention_ms bigint, p_asked_at timestamptz, p_store boolean,
    p_sources integer[], p_partitions integer[], p_ends bigint[], p_topic_ids text[])
RETURNS TABLE (cutoff timestamptz, held_by text, unusable_time text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    waiting record;
    reference timestamptz := p_asked_at;
    until timestamptz;
BEGIN
    IF p_store THEN
        PERFORM FROM pawl.idempotency_scopes s WHERE s.scope_id = p_scope_id FOR NO KEY UPDATE;
    END IF;
    SELECT w.since, w.what, min(w.what) FILTER (WHERE w.unusable) OVER () AS unusable INTO waiting
      FROM (
        SELECT CASE WHEN r.last_timestamp_ms IS NOT NULL
                    THEN least(pawl.record_time(r.last_timestamp_ms), r.updated_at) END AS since,
               format('%s [%s] of %s/%s', t.topic, partition, c.cluster, c.group_id) AS what,
               r.last_timestamp_ms IS NOT NULL AND pawl.record_time(r.last_timestamp_ms) IS NULL AS unusable
          FROM pawl.scope_sources u
          JOIN pawl.consumer_topics t USING (source_id)
          JOIN pawl.consumers c USING (consumer_id)
         CROSS JOIN LATERAL (
               SELECT partition, o.last_processed_offset, o.last_timestamp_ms, o.updated_at,
                      CASE WHEN e.topic_id IN ('', coalesce(o.topic_id, e.topic_id)) THEN e.log_end END AS log_end
                 FROM (SELECT * FROM pawl.processed_kafka_offsets o
                        WHERE o.consumer_id = t.consumer_id AND o.topic = t.topic) o
                 FULL JOIN (SELECT * FROM unnest(p_sources, p_partitions, p_ends, p_topic_ids)
                                          AS e (source_id, partition, log_end, topic_id)
                             WHERE e.source_id = t.source_id) e USING (partition)) r
         WHERE u.scope_id = p_scope_id
           AND (coalesce(r.last_processed_offset, -1) + 1 = r.log_end) IS NOT TRUE
        UNION ALL
        SELECT least(pawl.record_time(d.timestamp_ms), d.died_at),
               format('dead letter %s, whose key is unknown', d.dead_letter_id),
               d.timestamp_ms IS NOT NULL AND pawl.record_time(d.timestamp_ms) IS NULL
          FROM pawl.scope_sources u
          JOIN pawl.consumer_topics t USING (source_id)
          JOIN pawl.dead_letters d USING (consumer_id, topic)
         WHERE u.scope_id = p_scope_id AND d.status IN ('dead', 'parked') AND d.idempotency_key IS NULL
      ) w
     ORDER BY w.since NULLS FIRST
     LIMIT 1;
    IF FOUND THEN
        IF waiting.since IS NULL THEN
            RETURN QUERY SELECT NULL::timestamptz, waiting.what || ', which has messages and processed none yet',
                                waiting.unusable;
            RETURN;
        END IF;
        reference := least(reference, waiting.since);
    END IF;
    until := date_trunc('milliseconds', reference - make_interval(secs => p_retention_ms / 1000.0));
    IF p_store THEN
        UPDATE pawl.idempotency_scopes s
           SET pruned_to = greatest(until, s.renewed_since)
         WHERE s.scope_id = p_scope_id AND (s.pruned_to IS NULL OR s.pruned_to < until);
    END IF;
    RETURN QUERY SELECT until, CASE WHEN waiting.since < p_asked_at THEN waiting.what END, waiting.unusable;
END
$$;
