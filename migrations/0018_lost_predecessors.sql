-- pawl: stop-programs
-- Migration 0015 replaced functions that programs from before it call, so those have to be stopped.

-- ---- what a message that completed out of order follows ----------------------------------------------

-- Raises: the message that came before in the same order key, and that the caller has seen finished, is not finished
-- here. The stored offset does not tell that while an earlier message of another key is in progress.
CREATE FUNCTION pawl.refuse_predecessor(p_fence integer, p_offset bigint)
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    fence pawl.partition_fences%ROWTYPE;
BEGIN
    SELECT * INTO fence FROM pawl.partition_fences f WHERE f.fence_id = p_fence;
    RAISE EXCEPTION 'out of order: the message at offset % of % [%] was finished before, and is not: this database lost commits',
                    p_offset, fence.topic, fence.partition
        USING ERRCODE = 'PW002';
END
$$;

-- Whether that message is finished.
CREATE FUNCTION pawl.require_predecessor(p_fence integer, p_offset bigint)
RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN EXISTS (SELECT FROM pawl.messages_ahead a
                              WHERE a.fence_id = p_fence AND a.kafka_offset = p_offset AND a.outcome IS NOT NULL)
                  OR EXISTS (SELECT FROM pawl.partition_fences f
                               JOIN pawl.processed_kafka_offsets r USING (consumer_id, topic, partition)
                              WHERE f.fence_id = p_fence AND r.last_processed_offset >= p_offset)
                THEN true
                ELSE pawl.refuse_predecessor(p_fence, p_offset) END
$$;

-- ---- leases of calls, when the clock goes back --------------------------------------------------------

ALTER TABLE pawl.leases ADD COLUMN lease_ms bigint;
COMMENT ON COLUMN pawl.leases.lease_ms IS
    'How long the lease lasts. One that ends later than two of these from now was given before the clock went back.';

-- Whether the key is being called under a lease that has not ended.
CREATE FUNCTION pawl.lease_is_held(l pawl.leases)
RETURNS boolean
LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(l.owner IS NOT NULL AND l.lease_until > clock_timestamp()
                    AND l.lease_until <= clock_timestamp() + 2 * make_interval(secs => coalesce(l.lease_ms, 86400000) / 1000.0),
                    false)
$$;

-- As before, otherwise.
CREATE OR REPLACE FUNCTION pawl.acquire_lease(
    p_scope_id integer, p_key text, p_owner text, p_token bigint, p_ttl_ms bigint, p_payload_hash bigint,
    p_any_payload boolean, p_source_id integer, p_partition integer, p_offset bigint,
    p_fence integer, p_epoch bigint, p_stored bigint, p_consumer_id integer, p_topic text, p_record_key bytea)
RETURNS TABLE (answer text, attempt integer, unknown_ms bigint, response bytea, holder text, wait_ms bigint)
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    held pawl.leases%ROWTYPE;
    until timestamptz := clock_timestamp() + make_interval(secs => p_ttl_ms / 1000.0);
    first timestamptz;
BEGIN
    IF p_fence IS NOT NULL THEN
        PERFORM pawl.require_owned(p_fence, p_epoch, p_stored);
    END IF;
    IF p_record_key IS NOT NULL AND pawl.is_parked(p_consumer_id, p_topic, p_record_key) THEN
        RETURN QUERY SELECT 'parked', NULL::integer, NULL::bigint, NULL::bytea, NULL, NULL::bigint;
        RETURN;
    END IF;
    -- The insert would wait for who deletes the row.
    PERFORM FROM pawl.leases l WHERE l.scope_id = p_scope_id AND l.key = p_key;
    IF NOT FOUND THEN
        INSERT INTO pawl.leases AS l (scope_id, key, owner, token, lease_until, lease_ms, payload_hash, source_id, partition,
                                      kafka_offset)
        VALUES (p_scope_id, p_key, p_owner, p_token, until, p_ttl_ms, p_payload_hash, p_source_id, p_partition, p_offset)
        ON CONFLICT (scope_id, key) DO NOTHING;
        IF FOUND THEN
            PERFORM FROM pawl.idempotency_keys k WHERE k.scope_id = p_scope_id AND k.key = p_key;
            IF FOUND THEN
                DELETE FROM pawl.leases l WHERE l.scope_id = p_scope_id AND l.key = p_key;
                RETURN QUERY SELECT 'finished', NULL::integer, NULL::bigint, NULL::bytea, NULL, NULL::bigint;
                RETURN;
            END IF;
            RETURN QUERY SELECT 'mine', 1, NULL::bigint, NULL::bytea, NULL, NULL::bigint;
            RETURN;
        END IF;
    END IF;
    -- Does not wait: who finishes holds the row, and may wait for who waits for the fence that we hold.
    SELECT * INTO held FROM pawl.leases l
     WHERE l.scope_id = p_scope_id AND l.key = p_key
       FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        -- Somebody extends, finishes or takes it right now.
        RETURN QUERY SELECT 'pending', NULL::integer, NULL::bigint, NULL::bytea, 'another transaction', 20::bigint;
        RETURN;
    END IF;
    PERFORM FROM pawl.idempotency_keys k WHERE k.scope_id = p_scope_id AND k.key = p_key;
    IF FOUND THEN
        -- Recorded without this lease (it was lost, or the key has come by another way).
        IF NOT pawl.lease_is_held(held) THEN
            DELETE FROM pawl.leases l WHERE l.scope_id = p_scope_id AND l.key = p_key;
        END IF;
        RETURN QUERY SELECT 'finished', NULL::integer, NULL::bigint, NULL::bytea, NULL, NULL::bigint;
        RETURN;
    END IF;
    IF held.owner = p_owner AND held.token = p_token THEN
        -- Asked for before; the answer was lost on its way.
        UPDATE pawl.leases l SET lease_until = until, lease_ms = p_ttl_ms WHERE l.scope_id = p_scope_id AND l.key = p_key;
        RETURN QUERY SELECT CASE WHEN held.done THEN 'done' ELSE 'mine' END, held.attempt,
                            floor(extract(epoch FROM clock_timestamp() - held.unknown_since) * 1000)::bigint,
                            held.response, NULL, NULL::bigint;
        RETURN;
    END IF;
    IF pawl.lease_is_held(held) THEN
        RETURN QUERY SELECT 'pending', NULL::integer, NULL::bigint, NULL::bytea, held.owner,
                            ceil(extract(epoch FROM held.lease_until - clock_timestamp()) * 1000)::bigint;
        RETURN;
    END IF;
    -- Whose lease has ended without a word may have called, or may be about to.
    first := CASE WHEN held.owner IS NOT NULL AND NOT held.done
                  THEN least(held.unknown_since, held.begun_at) ELSE held.unknown_since END;
    IF held.payload_hash <> p_payload_hash AND NOT p_any_payload AND (held.done OR first IS NOT NULL) THEN
        RETURN QUERY
        SELECT 'conflict', NULL::integer, NULL::bigint, NULL::bytea,
               format('%s [%s] offset %s', t.topic, held.partition, held.kafka_offset), NULL::bigint
          FROM (SELECT 1) one LEFT JOIN pawl.consumer_topics t ON t.source_id = held.source_id;
        RETURN;
    END IF;
    UPDATE pawl.leases l
       SET owner = p_owner, token = p_token, lease_until = until, lease_ms = p_ttl_ms,
           resolved_by = CASE WHEN held.done THEN l.resolved_by END,
           resolved_at = CASE WHEN held.done THEN l.resolved_at END,
           attempt = held.attempt + (NOT held.done)::integer,
           begun_at = clock_timestamp(), unknown_since = first, changed_at = clock_timestamp(),
           payload_hash = p_payload_hash, source_id = p_source_id, partition = p_partition, kafka_offset = p_offset
     WHERE l.scope_id = p_scope_id AND l.key = p_key;
    RETURN QUERY SELECT CASE WHEN held.done THEN 'done' ELSE 'mine' END,
                        held.attempt + (NOT held.done)::integer,
                        floor(extract(epoch FROM clock_timestamp() - first) * 1000)::bigint,
                        held.response, NULL,
                        floor(extract(epoch FROM clock_timestamp() - held.begun_at) * 1000)::bigint;
END
$$;

-- As before, otherwise.
CREATE OR REPLACE FUNCTION pawl.extend_leases(
    p_owner text, p_ttl_ms bigint, p_scope_ids integer[], p_keys text[], p_tokens bigint[])
RETURNS TABLE (place integer, how text)
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    FOR i IN 1 .. cardinality(p_keys) LOOP
        place := i - 1;
        PERFORM FROM pawl.leases l
          WHERE l.scope_id = p_scope_ids[i] AND l.key = p_keys[i]
            AND l.owner = p_owner AND l.token = p_tokens[i]
            FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            UPDATE pawl.leases l
               SET lease_until = clock_timestamp() + make_interval(secs => p_ttl_ms / 1000.0),
                   lease_ms = p_ttl_ms
             WHERE l.scope_id = p_scope_ids[i] AND l.key = p_keys[i];
            how := 'extended';
        ELSE
            PERFORM FROM pawl.leases l
              WHERE l.scope_id = p_scope_ids[i] AND l.key = p_keys[i]
                AND l.owner = p_owner AND l.token = p_tokens[i];
            how := CASE WHEN FOUND THEN 'busy' ELSE 'lost' END;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

-- As before, otherwise.
CREATE OR REPLACE FUNCTION pawl.resolve_lease(p_scope_id integer, p_key text, p_done boolean, p_response bytea)
RETURNS integer
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    held pawl.leases%ROWTYPE;
BEGIN
    SELECT * INTO held FROM pawl.leases l WHERE l.scope_id = p_scope_id AND l.key = p_key FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no attempt of this key is open' USING ERRCODE = 'PW016',
            HINT = 'It is finished, or was never begun: look with `keys show`.';
    ELSIF pawl.lease_is_held(held) THEN
        RAISE EXCEPTION 'its call is in hand, by % until %', held.owner, held.lease_until USING ERRCODE = 'PW016',
            HINT = 'Wait for it: what it returns counts.';
    END IF;
    UPDATE pawl.leases l
       SET owner = NULL, token = -1, lease_until = NULL, unknown_since = NULL, done = p_done,
           response = p_response, resolved_by = session_user, resolved_at = clock_timestamp(),
           changed_at = clock_timestamp()
     WHERE l.scope_id = p_scope_id AND l.key = p_key;
    RETURN held.attempt;
END
$$;
