-- Idempotency keys, stored responses, and the retention of both.

-- ---- scopes -----------------------------------------------------------------------------------------------

CREATE TABLE pawl.idempotency_scopes (
    scope_id  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name      text NOT NULL UNIQUE,
    pruned_to timestamptz,
    swept_to  timestamptz
);
COMMENT ON TABLE pawl.idempotency_scopes IS 'Scopes of idempotency keys: a key is unique within its scope.';
COMMENT ON COLUMN pawl.idempotency_scopes.scope_id IS 'Number of the scope in other tables.';
COMMENT ON COLUMN pawl.idempotency_scopes.name IS
    'Name of the scope, from idempotency.scope and the consumer or topic.';
COMMENT ON COLUMN pawl.idempotency_scopes.pruned_to IS
    'Keys created before this time may have been removed. pawl stores the time before it removes the first key, and never lowers it.';
COMMENT ON COLUMN pawl.idempotency_scopes.swept_to IS 'Cutoff of the last completed removal. NULL: none has completed.';

-- A row exists before the first key of its source, so that no process removes keys that a partition of that source still
-- needs.
CREATE TABLE pawl.scope_sources (
    scope_id     integer NOT NULL REFERENCES pawl.idempotency_scopes,
    source_id    integer NOT NULL REFERENCES pawl.consumer_topics (source_id),
    retention_ms bigint,
    PRIMARY KEY (scope_id, source_id)
);
COMMENT ON TABLE pawl.scope_sources IS 'Which topics of which consumers store keys in a scope.';
COMMENT ON COLUMN pawl.scope_sources.scope_id IS 'The scope (pawl.idempotency_scopes).';
COMMENT ON COLUMN pawl.scope_sources.source_id IS 'The topic of a consumer (pawl.consumer_topics).';
COMMENT ON COLUMN pawl.scope_sources.retention_ms IS
    'How long the consumer of the topic keeps keys of the scope, in milliseconds. 0: forever. NULL: not known yet.';

-- Raises because the number of a scope that a process has cached is not the number of that scope in this database.
CREATE FUNCTION pawl.reject_scope(p_scope_id integer, p_name text)
RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the scope % does not have number % in this database: it lost commits, or it is another database',
                    p_name, p_scope_id
        USING ERRCODE = 'PW017';
END
$$;

CREATE FUNCTION pawl.longer_retention(p_one_ms bigint, p_other_ms bigint)
RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN 0 IN (p_one_ms, p_other_ms) THEN 0 ELSE greatest(p_one_ms, p_other_ms) END
$$;
COMMENT ON FUNCTION pawl.longer_retention(bigint, bigint) IS
    'The longer of two retention periods in milliseconds. 0 means forever, NULL means unknown.';

-- ---- keys -------------------------------------------------------------------------------------------------

-- A key stands for each message that was found to have it, not only for the one that claimed it: a message that was produced
-- after created_at renews the key. So a message with a timestamp after pruned_to was not processed if its key is not stored
-- (docs/retention.md).
--
-- A removal leaves about a tenth of the table dead. Vacuum has to run after each removal, or the table grows by space that
-- later inserts could have reused. It must not run during a removal, because each vacuum reads the whole index. Empty pages
-- at the end stay: they are filled again, and truncating them locks out claims.
CREATE TABLE pawl.idempotency_keys (
    scope_id     integer NOT NULL,
    key          text COLLATE "C" NOT NULL,
    payload_hash bigint NOT NULL,
    source_id    integer NOT NULL,
    partition    integer NOT NULL,
    kafka_offset bigint NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    response     bytea,
    PRIMARY KEY (scope_id, key)
) WITH (
    autovacuum_vacuum_scale_factor = 0.08, autovacuum_vacuum_threshold = 10000, vacuum_truncate = false,
    toast.autovacuum_vacuum_scale_factor = 0.08, toast.autovacuum_vacuum_threshold = 10000,
    toast.vacuum_truncate = false);
COMMENT ON TABLE pawl.idempotency_keys IS
    'Idempotency keys of processed messages. A message with a stored key is a duplicate and is not applied again.';
COMMENT ON COLUMN pawl.idempotency_keys.scope_id IS 'The scope (pawl.idempotency_scopes).';
COMMENT ON COLUMN pawl.idempotency_keys.key IS 'The idempotency key.';
COMMENT ON COLUMN pawl.idempotency_keys.payload_hash IS
    'Hash of the message''s value, to report a key that two different messages share.';
COMMENT ON COLUMN pawl.idempotency_keys.source_id IS
    'Topic and consumer of the message that claimed the key (pawl.consumer_topics.source_id).';
COMMENT ON COLUMN pawl.idempotency_keys.partition IS 'Partition of that message.';
COMMENT ON COLUMN pawl.idempotency_keys.kafka_offset IS 'Offset of that message.';
COMMENT ON COLUMN pawl.idempotency_keys.created_at IS
    'When the key was claimed, or renewed by a duplicate that was produced later.';
COMMENT ON COLUMN pawl.idempotency_keys.response IS 'Response that the handler returned. NULL: none.';

CREATE FUNCTION pawl.stored_key(p_scope_id integer, p_key text)
RETURNS SETOF pawl.idempotency_keys
LANGUAGE plpgsql STABLE
SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY SELECT * FROM pawl.idempotency_keys k WHERE k.scope_id = p_scope_id AND k.key = p_key;
END
$$;
COMMENT ON FUNCTION pawl.stored_key(integer, text) IS 'A stored idempotency key.';

-- Which of these keys are stored: their indexes in p_keys, from 0, and the stored facts. Each key is looked up by the index,
-- whatever the statistics say: a plan outlives them, and a table that was empty grows by thousands of rows per second.
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
    'Which of many idempotency keys are stored.';

-- Locks each key once, in the order of the keys and not of p_keys, so that two batches do not deadlock. Raises if a key is
-- gone: a removal came between, and the message of that key is a new one.
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
        RAISE EXCEPTION 'an idempotency key was removed while it was being renewed' USING ERRCODE = 'PW011';
    END IF;
    UPDATE pawl.idempotency_keys k SET created_at = clock_timestamp()
     WHERE k.scope_id = p_scope_id AND k.key = ANY (p_keys);
END
$$;
COMMENT ON FUNCTION pawl.renew_keys(integer, text[]) IS
    'Renews created_at of keys because duplicates with later timestamps were found.';

-- A pipelined message must raise instead of returning that it claimed nothing, because later statements are already sent.
-- Its key was looked up before, so this happens only in a race.
CREATE FUNCTION pawl.reject_claim()
RETURNS bytea
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the idempotency key was claimed meanwhile, or the record key is parked'
        USING ERRCODE = 'PW008';
END
$$;
COMMENT ON FUNCTION pawl.reject_claim() IS
    'Rolls back a pipelined transaction of a duplicate, or of a message that must wait. The message is then processed alone.';

-- No process reads the row counts of a pipelined message before COMMIT is sent, so a wrong row count must raise.
CREATE FUNCTION pawl.reject_rows(p_touched bigint, p_expected bigint)
RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a statement of the handler affected % rows; expect_rows requires %', p_touched, p_expected
        USING ERRCODE = 'PW009';
END
$$;
COMMENT ON FUNCTION pawl.reject_rows(bigint, bigint) IS
    'Rolls back a pipelined transaction with a row count that expect_rows does not allow. The message is then processed alone.';

-- ---- stored responses -------------------------------------------------------------------------------------

-- Stores what a statement of a handler returned with the key that this transaction has claimed (pawl_message.claimed).
-- Without a claimed key it stores nothing. p_rows: how many rows the statement returned or affected; p_response is the value
-- of the first row. p_expected: how many it must, NULL for any. Raises on errors, because COMMIT may already be sent. The key
-- is looked up by the index, whatever the statistics say.
CREATE FUNCTION pawl.store_response(
    p_rows bigint, p_expected bigint, p_response bytea, p_most bigint)
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    claimed text := nullif(current_setting('pawl_message.claimed', true), '');
BEGIN
    IF p_rows <> p_expected THEN
        RAISE EXCEPTION 'the statement affected % rows; expect_rows requires %. Nothing was stored', p_rows, p_expected
            USING ERRCODE = 'PW009';
    ELSIF p_rows > 1 THEN
        RAISE EXCEPTION 'the statement returned % rows; a response is at most one row', p_rows USING ERRCODE = 'PW013';
    ELSIF claimed IS NULL OR p_response IS NULL THEN
        RETURN;
    ELSIF octet_length(p_response) > p_most THEN
        RAISE EXCEPTION 'the response has % bytes; idempotency.max_response allows %', octet_length(p_response), p_most
            USING ERRCODE = 'PW014', HINT = 'Return less, or raise idempotency.max_response.';
    END IF;
    UPDATE pawl.idempotency_keys k SET response = p_response
     WHERE k.scope_id = split_part(claimed, ':', 1)::integer AND k.key = substr(claimed, strpos(claimed, ':') + 1);
END
$$;
COMMENT ON FUNCTION pawl.store_response(bigint, bigint, bytea, bigint) IS
    'Stores the response of an SQL handler with the key of its message.';

-- The same for many messages. p_places: for each response, the index in p_keys of its message, from 1. A key is NULL if its
-- message has none. Without p_keys, the responses belong to the message whose key this transaction has claimed.
CREATE FUNCTION pawl.store_responses(
    p_most bigint, p_scope_id integer, p_keys text[], p_places bigint[], p_responses bytea[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
DECLARE
    claimed text := nullif(current_setting('pawl_message.claimed', true), '');
    scope integer := p_scope_id;
    keys text[] := p_keys;
    wrong record;
BEGIN
    IF keys IS NULL THEN
        scope := split_part(claimed, ':', 1)::integer;
        keys := ARRAY[substr(claimed, strpos(claimed, ':') + 1)];
    END IF;
    SELECT r.place INTO wrong
      FROM unnest(p_places) AS r (place)
     WHERE r.place IS NULL OR r.place NOT BETWEEN 1 AND cardinality(keys) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the statement returned a row for message % of %; the first column numbers messages from 1',
                        coalesce(wrong.place::text, 'NULL'), cardinality(keys) USING ERRCODE = 'PW013';
    END IF;
    SELECT r.place, count(*) AS rows INTO wrong
      FROM unnest(p_places) AS r (place) GROUP BY r.place HAVING count(*) > 1 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the statement returned % rows for message % of %; a response is at most one row',
                        wrong.rows, wrong.place, cardinality(keys) USING ERRCODE = 'PW013';
    END IF;
    SELECT octet_length(r.response) AS bytes INTO wrong
      FROM unnest(p_places, p_responses) AS r (place, response)
     WHERE octet_length(r.response) > p_most AND keys[r.place] IS NOT NULL LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'a response has % bytes; idempotency.max_response allows %', wrong.bytes, p_most
            USING ERRCODE = 'PW014', HINT = 'Return less, or raise idempotency.max_response.';
    END IF;
    UPDATE pawl.idempotency_keys k SET response = r.response
      FROM unnest(p_places, p_responses) AS r (place, response)
     WHERE k.scope_id = scope AND k.key = keys[r.place] AND r.response IS NOT NULL;
END
$$;
COMMENT ON FUNCTION pawl.store_responses(bigint, integer, text[], bigint[], bytea[]) IS
    'Stores the responses of a batch with the keys of its messages.';

-- ---- retention --------------------------------------------------------------------------------------------

-- A lease instead of an advisory lock, because session locks do not work through poolers. If two processes remove at once,
-- they share the work, and nothing breaks.
CREATE TABLE pawl.retention_state (
    consumer_id       integer PRIMARY KEY REFERENCES pawl.consumers,
    holder            text,
    lease_until       timestamptz,
    records_pruned_to timestamptz,
    swept_at          timestamptz,
    removed_keys      bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE pawl.retention_state IS
    'Retention of a consumer: one process at a time removes old keys, resolved dead letters, and skipped messages (docs/retention.md).';
COMMENT ON COLUMN pawl.retention_state.consumer_id IS 'The consumer (pawl.consumers).';
COMMENT ON COLUMN pawl.retention_state.holder IS 'Process that holds the lease. NULL: none.';
COMMENT ON COLUMN pawl.retention_state.lease_until IS 'When the lease expires.';
COMMENT ON COLUMN pawl.retention_state.records_pruned_to IS
    'Resolved dead letters and skipped messages from before this time may have been removed.';
COMMENT ON COLUMN pawl.retention_state.swept_at IS 'When a removal last completed.';
COMMENT ON COLUMN pawl.retention_state.removed_keys IS 'Number of idempotency keys removed so far.';

-- Timestamps of records may be wrong: some producers write nanoseconds instead of milliseconds. A time before 1970 counts as
-- 1970, which is older than every message. A year of more than four digits is NULL.
CREATE FUNCTION pawl.record_time(p_timestamp_ms bigint)
RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_timestamp_ms < 253402300800000
                THEN to_timestamp(greatest(p_timestamp_ms, 0) / 1000.0) END
$$;

-- The cutoff before which keys of a scope may be removed: p_retention_ms before the oldest message that may still arrive. In
-- a partition at its log's end, that is a message appended after p_asked_at. In another partition it is the next message,
-- which is not older than the last processed one. p_ends are the ends of the logs that Kafka returned AFTER p_asked_at. A
-- partition that is not among them, is after the end, or whose topic was created again counts as not at its end. A dead
-- letter without a known key is a message that may still arrive.
--
-- With p_store, the scope's row is locked before the stored offsets are read, and pruned_to is stored. An operator
-- who sets an offset back (pawl.require_unpruned) may do so before this reads, which holds the cutoff back. After the cutoff
-- is stored, the operator needs --force.
--
-- cutoff NULL: no key may be removed. held_by: what the cutoff depends on, NULL if each partition is at its log's end.
-- unusable_time: a partition, not at its end, whose last record has an impossible timestamp; the time of its processing
-- counts instead. NULL: none.
CREATE FUNCTION pawl.prune_cutoff(
    p_scope_id integer, p_retention_ms bigint, p_asked_at timestamptz, p_store boolean,
    p_sources integer[], p_partitions integer[], p_ends bigint[], p_topic_ids text[])
RETURNS TABLE (cutoff timestamptz, held_by text, unusable_time text)
LANGUAGE plpgsql
SET enable_seqscan = off SET jit = off AS $$
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
               format('%s[%s] of %s/%s', t.topic, partition, c.cluster, c.group_id) AS what,
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
           SET pruned_to = until
         WHERE s.scope_id = p_scope_id AND (s.pruned_to IS NULL OR s.pruned_to < until);
    END IF;
    RETURN QUERY SELECT until, CASE WHEN waiting.since < p_asked_at THEN waiting.what END, waiting.unusable;
END
$$;

-- Raises if keys of this topic were removed that the operator has not seen removed, in the transaction that sets an offset
-- back. Locks the scopes against prune_cutoff() until that transaction has ended.
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
            USING ERRCODE = 'PW010', HINT = 'Repeat the command.';
    END IF;
END
$$;
