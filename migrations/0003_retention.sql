-- Removal of what is no longer needed: idempotency keys beyond their retention, resolved dead
-- letters, records of skipped messages. docs/retention.md gives the rule and its reasons.

-- Which topics of which consumers put keys into a scope. A row is there before the first key of its
-- source, so that nobody removes keys which a partition of that source still needs.
CREATE TABLE pawl.scope_sources (
    scope_id  integer NOT NULL REFERENCES pawl.idempotency_scopes,
    source_id integer NOT NULL REFERENCES pawl.consumer_topics (source_id),
    PRIMARY KEY (scope_id, source_id)
);
INSERT INTO pawl.scope_sources (scope_id, source_id)
SELECT DISTINCT k.scope_id, k.source_id
  FROM pawl.idempotency_keys k
  JOIN pawl.idempotency_scopes USING (scope_id)
  JOIN pawl.consumer_topics USING (source_id);

ALTER TABLE pawl.idempotency_scopes
    ADD COLUMN pruned_to timestamptz,
    ADD COLUMN swept_to  timestamptz;
COMMENT ON COLUMN pawl.idempotency_scopes.pruned_to IS
    'Keys created before it may have been removed. Stored before the first of them goes; only grows.';
COMMENT ON COLUMN pawl.idempotency_scopes.swept_to IS
    'The cutoff of the last sweep that came to its end.';

-- One process of a group removes at a time. A lease instead of an advisory lock, since a session lock
-- does not work through poolers; nothing breaks if two work at once, they only share the work.
CREATE TABLE pawl.retention_state (
    consumer_id       integer PRIMARY KEY REFERENCES pawl.consumers,
    holder            text,
    lease_until       timestamptz,
    records_pruned_to timestamptz,
    swept_at          timestamptz,
    removed_keys      bigint NOT NULL DEFAULT 0
);
COMMENT ON COLUMN pawl.retention_state.records_pruned_to IS
    'Resolved dead letters and skipped messages of before may have been removed.';

-- Whether a dead letter waits for this key: asked for every key that is removed.
CREATE INDEX dead_letters_by_idempotency_key ON pawl.dead_letters (idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX skipped_messages_by_age ON pawl.skipped_messages (skipped_at);

-- A sweep leaves about a tenth of the table dead. Vacuum has to come after each, or the table grows by
-- what the next inserts could have reused; and not in its midst, since each vacuum reads the index. Trailing empty pages stay: they are filled again,
-- and giving them back locks claims out.
ALTER TABLE pawl.idempotency_keys SET (
    autovacuum_vacuum_scale_factor = 0.08, autovacuum_vacuum_threshold = 10000, vacuum_truncate = false,
    toast.autovacuum_vacuum_scale_factor = 0.08, toast.autovacuum_vacuum_threshold = 10000,
    toast.vacuum_truncate = false);

-- Up to when keys of a scope may go: p_retention_ms before the oldest message that may still come. Of
-- a partition at its log's end that is one appended after p_asked_at, of another one its next message,
-- which is no older than the last processed one. p_ends are the logs' ends as Kafka told them AFTER
-- p_asked_at; a partition that is not among them,
-- stands behind the end, or whose topic was made anew, counts as not at its end. A dead letter whose key
-- is unknown is a message that may still come.
--
-- With p_store the scope's row is locked before the register is read, and pruned_to is stored: an
-- operator who sets a partition back (pawl.require_unpruned) does so before this reads, and holds the
-- cutoff back, or after it is stored, and is asked for --force.
--
-- cutoff NULL: nothing may go. held_by: what the cutoff depends on, NULL if every log is at its end.
CREATE FUNCTION pawl.prune_cutoff(
    p_scope_id integer, p_retention_ms bigint, p_asked_at timestamptz, p_store boolean,
    p_sources integer[], p_partitions integer[], p_ends bigint[], p_topic_ids text[])
RETURNS TABLE (cutoff timestamptz, held_by text)
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
    SELECT w.since, w.what INTO waiting
      FROM (
        SELECT CASE WHEN r.last_timestamp_ms IS NOT NULL
                    THEN least(to_timestamp(r.last_timestamp_ms / 1000.0), r.updated_at) END AS since,
               format('%s [%s] of %s/%s', t.topic, partition, c.cluster, c.group_id) AS what
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
        SELECT least(to_timestamp(d.timestamp_ms / 1000.0), d.died_at),
               format('dead letter %s, whose key is unknown', d.dead_letter_id)
          FROM pawl.scope_sources u
          JOIN pawl.consumer_topics t USING (source_id)
          JOIN pawl.dead_letters d USING (consumer_id, topic)
         WHERE u.scope_id = p_scope_id AND d.status IN ('dead', 'parked') AND d.idempotency_key IS NULL
      ) w
     ORDER BY w.since NULLS FIRST
     LIMIT 1;
    IF FOUND THEN
        IF waiting.since IS NULL THEN
            RETURN QUERY SELECT NULL::timestamptz, waiting.what || ', which has messages and processed none yet';
            RETURN;
        END IF;
        reference := least(reference, waiting.since);
    END IF;
    until := date_trunc('milliseconds', reference - make_interval(secs => p_retention_ms / 1000.0));
    IF p_store THEN
        UPDATE pawl.idempotency_scopes s
           SET pruned_to = until
         WHERE s.scope_id = p_scope_id AND (s.pruned_to IS NULL OR s.pruned_to < until);
    END IF;
    RETURN QUERY SELECT until, CASE WHEN waiting.since < p_asked_at THEN waiting.what END;
END
$$;

-- Raises when keys of this topic were removed beyond what the operator has seen, in the transaction
-- that sets a partition back. Locks the scopes against prune_cutoff() until that has committed.
CREATE FUNCTION pawl.require_unpruned(p_consumer_id integer, p_topic text, p_seen_ms bigint)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM pawl.idempotency_scopes s
       JOIN pawl.scope_sources u USING (scope_id)
       JOIN pawl.consumer_topics t USING (source_id)
      WHERE t.consumer_id = p_consumer_id AND t.topic = p_topic
      ORDER BY s.scope_id
        FOR SHARE OF s;
    PERFORM FROM pawl.idempotency_scopes s
       JOIN pawl.scope_sources u USING (scope_id)
       JOIN pawl.consumer_topics t USING (source_id)
      WHERE t.consumer_id = p_consumer_id AND t.topic = p_topic
        AND s.pruned_to > coalesce(to_timestamp(p_seen_ms / 1000.0), '-infinity');
    IF FOUND THEN
        RAISE EXCEPTION 'idempotency keys of % were removed meanwhile', p_topic
            USING ERRCODE = 'PW008', HINT = 'Repeat the command.';
    END IF;
END
$$;
