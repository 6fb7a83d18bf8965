-- What a process believes of this database is compared where it is used: the number of a key's scope, the stored
-- offset that a message completed out of order follows, the session that its transaction runs in, the database itself.
-- A pooler keeps a connection over a failover, a restore and a change of its entry, so a connection that still works
-- proves none of that. docs/design.md, "Facts that are verified", gives the reasons.

-- ---- epochs that no other database has given ---------------------------------------------------------

-- The owner epoch of the next acquire: a counter in the upper bits, and 24 random bits. An epoch that one database gave
-- is not given again by another one, or by the same one after it lost its last commits, so no advance passes there
-- without an acquire.
CREATE FUNCTION pawl.next_epoch(p_epoch bigint)
RETURNS bigint
LANGUAGE sql VOLATILE AS $$
    SELECT (((p_epoch >> 24) + 1) << 24) | floor(random() * 16777216)::bigint
$$;
COMMENT ON COLUMN pawl.processed_kafka_offsets.owner_epoch IS
    'Fencing token, changed by every acquire: a counter in the upper bits, 24 random bits below; only its holder may advance.';

DROP FUNCTION pawl.raise_fence(integer, text, integer, bigint);
-- Raises the epoch of the partition's fence, under the lock of the offset row, and returns its number.
-- p_new: the offset row was never acquired before.
CREATE FUNCTION pawl.raise_fence(
    p_consumer_id integer, p_topic text, p_partition integer, p_epoch bigint, p_new boolean)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    fence integer;
BEGIN
    SELECT f.fence_id INTO fence FROM pawl.partition_fences f
     WHERE f.consumer_id = p_consumer_id AND f.topic = p_topic AND f.partition = p_partition;
    IF NOT FOUND THEN
        INSERT INTO pawl.partition_fences (consumer_id, topic, partition, epoch)
        VALUES (p_consumer_id, p_topic, p_partition, p_epoch)
        RETURNING fence_id INTO fence;
    END IF;
    -- 'pawf' in ASCII: the class of these locks. Waits for transactions that are about to commit, up to lock_timeout.
    PERFORM pg_advisory_xact_lock(1885435750, fence);
    UPDATE pawl.partition_fences f SET epoch = p_epoch WHERE f.fence_id = fence;
    -- What was known belonged to an offset row that was deleted.
    IF p_new THEN
        DELETE FROM pawl.messages_ahead a WHERE a.fence_id = fence;
    END IF;
    RETURN fence;
END
$$;

-- As before, with the next epoch.
CREATE OR REPLACE FUNCTION pawl.acquire(
    p_consumer_id integer, p_topic text, p_partition integer,
    p_owner text, p_owner_pid integer, p_owner_backend_start timestamptz)
RETURNS TABLE (
    epoch bigint, stored_offset bigint, state text, halt_kind text, state_reason text,
    topic_id text, leader_epoch integer, released boolean,
    previous_owner text, previous_pid integer, previous_backend_start timestamptz, fence integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    held pawl.processed_kafka_offsets%ROWTYPE;
    raised integer;
    next_epoch bigint;
BEGIN
    SELECT * INTO held
      FROM pawl.processed_kafka_offsets r
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    next_epoch := pawl.next_epoch(held.owner_epoch);
    raised := pawl.raise_fence(p_consumer_id, p_topic, p_partition, next_epoch, held.owner_epoch = 0);
    UPDATE pawl.processed_kafka_offsets r
       SET owner_epoch = next_epoch,
           owner = p_owner,
           owner_pid = p_owner_pid,
           owner_backend_start = p_owner_backend_start,
           released = false,
           acquired_at = clock_timestamp()
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition;
    RETURN QUERY SELECT next_epoch, held.last_processed_offset, held.state, held.halt_kind,
                        held.state_reason, held.topic_id, held.leader_epoch, held.released,
                        held.owner, held.owner_pid, held.owner_backend_start, raised;
END
$$;

-- As before, with the next epoch.
CREATE OR REPLACE FUNCTION pawl.operator_change(
    p_consumer_id integer, p_topic text, p_partition integer,
    p_offset bigint, p_state text, p_action text, p_reason text)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    held pawl.processed_kafka_offsets%ROWTYPE;
    fence integer;
    next_epoch bigint;
BEGIN
    IF p_state NOT IN ('running', 'paused') THEN
        RAISE EXCEPTION 'an operator makes a partition running or paused, not %', p_state
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Only its owner halts it (pawl.halt).';
    END IF;
    SELECT * INTO held
      FROM pawl.processed_kafka_offsets r
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no register row for % [%]', p_topic, p_partition USING ERRCODE = 'PW004';
    END IF;
    next_epoch := pawl.next_epoch(held.owner_epoch);
    fence := pawl.raise_fence(p_consumer_id, p_topic, p_partition, next_epoch, held.owner_epoch = 0);
    -- A message that is left out is stored as passed by now. It may have been finished just before.
    IF p_action = 'skip' AND EXISTS (
        SELECT FROM pawl.messages_ahead a
         WHERE a.fence_id = fence AND a.kafka_offset = held.last_processed_offset AND a.outcome IS NOT NULL) THEN
        RAISE EXCEPTION 'out of order: the message at offset % of % [%] is processed already',
                        held.last_processed_offset, p_topic, p_partition
            USING ERRCODE = 'PW002';
    END IF;
    -- What is set back, or where it stands, is done again. What was finished above where it goes on stays so.
    DELETE FROM pawl.messages_ahead a
     WHERE a.fence_id = fence
       AND (a.outcome IS NULL OR a.kafka_offset <= p_offset OR p_offset <= held.last_processed_offset);
    UPDATE pawl.processed_kafka_offsets r
       SET owner_epoch = next_epoch,
           last_processed_offset = coalesce(p_offset, held.last_processed_offset),
           base_offset = CASE WHEN p_offset IS NULL THEN held.base_offset ELSE p_offset END,
           applied_count = CASE WHEN p_offset IS NULL THEN held.applied_count ELSE 0 END,
           duplicate_count = CASE WHEN p_offset IS NULL THEN held.duplicate_count ELSE 0 END,
           skipped_count = CASE WHEN p_offset IS NULL THEN held.skipped_count ELSE 0 END,
           unchecked_count = CASE WHEN p_offset IS NULL THEN held.unchecked_count ELSE 0 END,
           dead_count = CASE WHEN p_offset IS NULL THEN held.dead_count ELSE 0 END,
           parked_count = CASE WHEN p_offset IS NULL THEN held.parked_count ELSE 0 END,
           -- Who resumes or moves a partition has done something about its message: it begins anew.
           attempts = 0,
           attempts_offset = NULL,
           -- A position set by hand is a statement about the topic as it is now.
           topic_id = CASE WHEN p_offset IS NULL THEN held.topic_id END,
           leader_epoch = CASE WHEN p_offset IS NULL THEN held.leader_epoch END,
           state = coalesce(p_state, held.state),
           halt_kind = CASE WHEN coalesce(p_state, held.state) = 'halted' THEN held.halt_kind END,
           state_reason = CASE WHEN p_state IS NULL THEN held.state_reason ELSE p_reason END,
           state_since = CASE WHEN p_state IS NULL THEN held.state_since ELSE clock_timestamp() END,
           updated_at = clock_timestamp()
     WHERE r.consumer_id = p_consumer_id AND r.topic = p_topic AND r.partition = p_partition;
    DELETE FROM pawl.suspects s
     WHERE s.consumer_id = p_consumer_id AND s.topic = p_topic AND s.partition = p_partition;
    INSERT INTO pawl.offset_history (consumer_id, topic, partition, action, from_offset, to_offset, reason)
    VALUES (p_consumer_id, p_topic, p_partition, p_action, held.last_processed_offset,
            coalesce(p_offset, held.last_processed_offset), p_reason);
    RETURN held.last_processed_offset;
END
$$;

-- ---- completions out of order ------------------------------------------------------------------------

-- Reports why a message must not be completed out of order, always by raising: an INSERT of no row would not stop the
-- COMMIT that was sent after it.
DROP FUNCTION pawl.refuse_finish(pawl.partition_fences, bigint, xid8);
CREATE FUNCTION pawl.refuse_finish(p_fence integer, p_epoch bigint, p_stored bigint, p_transaction xid8)
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    fence pawl.partition_fences%ROWTYPE;
    held pawl.processed_kafka_offsets%ROWTYPE;
BEGIN
    IF p_transaction IS NOT NULL AND p_transaction IS DISTINCT FROM pg_current_xact_id_if_assigned() THEN
        RAISE EXCEPTION 'the transaction that claimed the key has ended before the message was finished'
            USING ERRCODE = 'PW003',
                  HINT = 'A handler must not send COMMIT, ROLLBACK or BEGIN; use savepoints (pqxx::subtransaction).';
    END IF;
    SELECT * INTO fence FROM pawl.partition_fences f WHERE f.fence_id = p_fence;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'fenced: this database has no fence %: it lost the acquire of the partition', p_fence
            USING ERRCODE = 'PW001';
    END IF;
    SELECT * INTO held FROM pawl.processed_kafka_offsets r
     WHERE r.consumer_id = fence.consumer_id AND r.topic = fence.topic AND r.partition = fence.partition;
    IF fence.epoch <> p_epoch OR held.owner_epoch IS DISTINCT FROM p_epoch THEN
        RAISE EXCEPTION 'fenced: % [%] has owner epoch %, and ours is %: acquired by another owner or changed by an operator',
                        fence.topic, fence.partition, coalesce(held.owner_epoch, fence.epoch), p_epoch
            USING ERRCODE = 'PW001';
    END IF;
    RAISE EXCEPTION 'out of order: the stored offset of % [%] went back to %, and was % before: this database lost commits',
                    fence.topic, fence.partition, held.last_processed_offset, p_stored
        USING ERRCODE = 'PW002';
END
$$;

-- Raises unless the partition of the fence is owned under this epoch, and its stored offset is not behind p_stored, which
-- the caller has seen stored.
CREATE FUNCTION pawl.require_owned(p_fence integer, p_epoch bigint, p_stored bigint)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM pawl.partition_fences f JOIN pawl.processed_kafka_offsets r USING (consumer_id, topic, partition)
      WHERE f.fence_id = p_fence AND f.epoch = p_epoch AND r.owner_epoch = p_epoch
        AND r.last_processed_offset >= p_stored;
    IF NOT FOUND THEN
        PERFORM pawl.refuse_finish(p_fence, p_epoch, p_stored, NULL);
    END IF;
END
$$;

-- As before; the stored offset is compared as well.
DROP FUNCTION pawl.acquire_lease(integer, text, text, bigint, bigint, bigint, boolean, integer, integer, bigint, integer, bigint, integer, text, bytea);
DROP FUNCTION pawl.look_before_call(integer, text, integer, bigint, integer, text, bytea);
CREATE FUNCTION pawl.acquire_lease(
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
        INSERT INTO pawl.leases AS l (scope_id, key, owner, token, lease_until, payload_hash, source_id, partition,
                                      kafka_offset)
        VALUES (p_scope_id, p_key, p_owner, p_token, until, p_payload_hash, p_source_id, p_partition, p_offset)
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
        IF held.owner IS NULL OR held.lease_until <= clock_timestamp() THEN
            DELETE FROM pawl.leases l WHERE l.scope_id = p_scope_id AND l.key = p_key;
        END IF;
        RETURN QUERY SELECT 'finished', NULL::integer, NULL::bigint, NULL::bytea, NULL, NULL::bigint;
        RETURN;
    END IF;
    IF held.owner = p_owner AND held.token = p_token THEN
        -- Asked for before; the answer was lost on its way.
        UPDATE pawl.leases l SET lease_until = until WHERE l.scope_id = p_scope_id AND l.key = p_key;
        RETURN QUERY SELECT CASE WHEN held.done THEN 'done' ELSE 'mine' END, held.attempt,
                            floor(extract(epoch FROM clock_timestamp() - held.unknown_since) * 1000)::bigint,
                            held.response, NULL, NULL::bigint;
        RETURN;
    END IF;
    IF held.owner IS NOT NULL AND held.lease_until > clock_timestamp() THEN
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
       SET owner = p_owner, token = p_token, lease_until = until,
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

CREATE FUNCTION pawl.look_before_call(
    p_scope_id integer, p_key text, p_fence integer, p_epoch bigint, p_stored bigint, p_consumer_id integer, p_topic text,
    p_record_key bytea)
RETURNS text
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
BEGIN
    IF p_fence IS NOT NULL THEN
        PERFORM pawl.require_owned(p_fence, p_epoch, p_stored);
    END IF;
    IF p_record_key IS NOT NULL AND pawl.is_parked(p_consumer_id, p_topic, p_record_key) THEN
        RETURN 'parked';
    END IF;
    -- As record_call holds it. The key is looked for in a later statement, which sees what that has committed.
    IF NOT pg_try_advisory_xact_lock_shared(1885435751, hashtext(p_scope_id || ':' || p_key)) THEN
        RETURN 'busy';
    END IF;
    PERFORM FROM pawl.idempotency_keys k WHERE k.scope_id = p_scope_id AND k.key = p_key;
    IF FOUND THEN
        RETURN 'finished';
    END IF;
    PERFORM FROM pawl.leases l WHERE l.scope_id = p_scope_id AND l.key = p_key
                                 AND (l.owner IS NOT NULL OR l.unknown_since IS NOT NULL OR l.done);
    RETURN CASE WHEN FOUND THEN 'held' ELSE 'free' END;
END
$$;

-- ---- scopes, sessions and the database ---------------------------------------------------------------

-- Raises: the number of a scope that a process remembers is not that scope's here.
CREATE FUNCTION pawl.refuse_scope(p_scope_id integer, p_name text)
RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the scope of idempotency keys % does not have number % in this database: it lost commits, or is another one',
                    p_name, p_scope_id
        USING ERRCODE = 'PW017';
END
$$;

-- Raises: an earlier transaction of this session, or a function that it called, left settings behind.
CREATE FUNCTION pawl.refuse_session()
RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a setting of this session differs from what it was when the session began'
        USING ERRCODE = 'PW018';
END
$$;

-- Raises unless this is the database in which the process began. A pooler may lead the next transaction elsewhere.
CREATE FUNCTION pawl.require_database(p_database_id uuid)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    here uuid;
BEGIN
    SELECT i.database_id INTO here FROM pawl.database_identity i;
    IF here IS DISTINCT FROM p_database_id THEN
        RAISE EXCEPTION 'this is database %, and the process began in database %', coalesce(here::text, 'without an identity'),
                        p_database_id
            USING ERRCODE = 'PW019';
    END IF;
END
$$;
