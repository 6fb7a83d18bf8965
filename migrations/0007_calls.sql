-- External calls: leases of idempotency keys, for handlers with effects outside of the database (docs/external-calls.md). A
-- process that holds the lease of a key may call; the transaction that records the outcome ends the lease and claims the key.

CREATE TABLE pawl.leases (
    scope_id      integer NOT NULL,
    key           text COLLATE "C" NOT NULL,
    owner         text,
    token         bigint NOT NULL,
    lease_until   timestamptz,
    lease_ms      bigint,
    attempt       integer NOT NULL DEFAULT 1,
    started_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    unknown_since timestamptz,
    done          boolean NOT NULL DEFAULT false,
    response      bytea,
    resolved_by   text,
    resolved_at   timestamptz,
    payload_hash  bigint NOT NULL,
    source_id     integer NOT NULL,
    partition     integer NOT NULL,
    kafka_offset  bigint NOT NULL,
    changed_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (scope_id, key)
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, vacuum_truncate = false);
COMMENT ON TABLE pawl.leases IS
    'Calls that are in flight or not completed: one row per idempotency key, until the outcome is recorded. Show them with `pawl calls list`.';
COMMENT ON COLUMN pawl.leases.scope_id IS 'Scope of the key (pawl.idempotency_scopes).';
COMMENT ON COLUMN pawl.leases.key IS 'Idempotency key of the message.';
COMMENT ON COLUMN pawl.leases.owner IS
    'Process that holds the lease: the call is in flight until lease_until. NULL: the key waits for its next attempt.';
COMMENT ON COLUMN pawl.leases.token IS
    'Random number of the attempt. Only an owner with this token extends, releases, or ends the lease. -1: an operator resolved the call.';
COMMENT ON COLUMN pawl.leases.lease_until IS 'When the lease expires, by the clock of this server.';
COMMENT ON COLUMN pawl.leases.lease_ms IS
    'Duration of the lease. A lease that expires more than twice this from now was granted before the clock went back.';
COMMENT ON COLUMN pawl.leases.attempt IS 'Number of attempts so far.';
COMMENT ON COLUMN pawl.leases.started_at IS 'When the last attempt started.';
COMMENT ON COLUMN pawl.leases.unknown_since IS
    'When the first attempt with an unknown outcome started: its call may or may not have succeeded. NULL: there is none.';
COMMENT ON COLUMN pawl.leases.done IS
    'True: the call has succeeded with this response. The next attempt records that and does not call.';
COMMENT ON COLUMN pawl.leases.response IS 'Response of the call, if done. NULL: none.';
COMMENT ON COLUMN pawl.leases.resolved_by IS
    'Database role that recorded the outcome with `pawl calls resolve`. NULL: none.';
COMMENT ON COLUMN pawl.leases.resolved_at IS 'When that outcome was recorded.';
COMMENT ON COLUMN pawl.leases.payload_hash IS
    'Hash of the message''s value, to report a key that two different messages share.';
COMMENT ON COLUMN pawl.leases.source_id IS 'Topic and consumer of the message (pawl.consumer_topics.source_id).';
COMMENT ON COLUMN pawl.leases.partition IS 'Partition of the message.';
COMMENT ON COLUMN pawl.leases.kafka_offset IS 'Offset of the message.';
COMMENT ON COLUMN pawl.leases.changed_at IS 'When the row was last written, other than by extending the lease.';

CREATE TABLE pawl.lease_losses (
    loss_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope_id     integer NOT NULL,
    key          text COLLATE "C" NOT NULL,
    owner        text NOT NULL,
    attempt      integer NOT NULL,
    returned     boolean NOT NULL,
    source_id    integer NOT NULL,
    partition    integer NOT NULL,
    kafka_offset bigint NOT NULL,
    lost_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE pawl.lease_losses IS
    'Calls that outlasted their lease, so that another attempt may have called as well. Show them with `pawl calls list --lost`.';
COMMENT ON COLUMN pawl.lease_losses.loss_id IS 'Number of the row, ascending.';
COMMENT ON COLUMN pawl.lease_losses.scope_id IS 'Scope of the key (pawl.idempotency_scopes).';
COMMENT ON COLUMN pawl.lease_losses.key IS 'Idempotency key of the message.';
COMMENT ON COLUMN pawl.lease_losses.owner IS 'Process whose lease expired.';
COMMENT ON COLUMN pawl.lease_losses.attempt IS 'Number of its attempt.';
COMMENT ON COLUMN pawl.lease_losses.returned IS
    'True: the call returned an outcome. False: it failed, and its outcome is unknown.';
COMMENT ON COLUMN pawl.lease_losses.source_id IS 'Topic and consumer of the message (pawl.consumer_topics.source_id).';
COMMENT ON COLUMN pawl.lease_losses.partition IS 'Partition of the message.';
COMMENT ON COLUMN pawl.lease_losses.kafka_offset IS 'Offset of the message.';
COMMENT ON COLUMN pawl.lease_losses.lost_at IS 'When the process found that its lease had expired.';

-- Whether a process calls under a lease of the key that has not expired.
CREATE FUNCTION pawl.lease_is_held(l pawl.leases)
RETURNS boolean
LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(l.owner IS NOT NULL AND l.lease_until > clock_timestamp()
                    AND l.lease_until <= clock_timestamp() + 2 * make_interval(secs => coalesce(l.lease_ms, 86400000) / 1000.0),
                    false)
$$;

-- Acquires the lease of a key for p_ttl_ms from now, by the clock of this server. `answer` is one of:
--   mine      the caller makes attempt `attempt`; unknown_ms: age of the first attempt with an unknown outcome; wait_ms: age
--             of the previous attempt (NULL: not known)
--   done      as mine, but the call has succeeded: the caller records its response
--   pending   another process has the lease: `holder`, for another wait_ms
--   finished  the key is processed; the message is a duplicate
--   parked    the message must wait for an earlier one of its record key (p_record_key; NULL: not checked)
--   conflict  an attempt for another payload is unresolved; `holder`: its message
-- With p_fence: raises PW001 unless the partition still has that epoch; the caller holds the fence's lock shared.
--
-- The row is written first, and the key is read in a later statement. In the other order a caller could find no key, wait
-- for the row of a process that records its outcome meanwhile, and call again.
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
    -- The insert would wait for a session that deletes the row.
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
    -- Does not wait: a session that records an outcome holds the row, and may wait for the fence that this one holds.
    SELECT * INTO held FROM pawl.leases l
     WHERE l.scope_id = p_scope_id AND l.key = p_key
       FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        -- Another session extends, ends, or acquires it.
        RETURN QUERY SELECT 'pending', NULL::integer, NULL::bigint, NULL::bytea, 'another transaction', 20::bigint;
        RETURN;
    END IF;
    PERFORM FROM pawl.idempotency_keys k WHERE k.scope_id = p_scope_id AND k.key = p_key;
    IF FOUND THEN
        -- Recorded without this lease, because the lease was lost or the key was processed in another way.
        IF NOT pawl.lease_is_held(held) THEN
            DELETE FROM pawl.leases l WHERE l.scope_id = p_scope_id AND l.key = p_key;
        END IF;
        RETURN QUERY SELECT 'finished', NULL::integer, NULL::bigint, NULL::bytea, NULL, NULL::bigint;
        RETURN;
    END IF;
    IF held.owner = p_owner AND held.token = p_token THEN
        -- A repeated request whose first response was lost.
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
    -- A process whose lease expired without a release may have called, or may be about to.
    first := CASE WHEN held.owner IS NOT NULL AND NOT held.done
                  THEN least(held.unknown_since, held.started_at) ELSE held.unknown_since END;
    IF held.payload_hash <> p_payload_hash AND NOT p_any_payload AND (held.done OR first IS NOT NULL) THEN
        RETURN QUERY
        SELECT 'conflict', NULL::integer, NULL::bigint, NULL::bytea,
               format('%s[%s]@%s', t.topic, held.partition, held.kafka_offset), NULL::bigint
          FROM (SELECT 1) one LEFT JOIN pawl.consumer_topics t ON t.source_id = held.source_id;
        RETURN;
    END IF;
    UPDATE pawl.leases l
       SET owner = p_owner, token = p_token, lease_until = until, lease_ms = p_ttl_ms,
           resolved_by = CASE WHEN held.done THEN l.resolved_by END,
           resolved_at = CASE WHEN held.done THEN l.resolved_at END,
           attempt = held.attempt + (NOT held.done)::integer,
           started_at = clock_timestamp(), unknown_since = first, changed_at = clock_timestamp(),
           payload_hash = p_payload_hash, source_id = p_source_id, partition = p_partition, kafka_offset = p_offset
     WHERE l.scope_id = p_scope_id AND l.key = p_key;
    RETURN QUERY SELECT CASE WHEN held.done THEN 'done' ELSE 'mine' END,
                        held.attempt + (NOT held.done)::integer,
                        floor(extract(epoch FROM clock_timestamp() - first) * 1000)::bigint,
                        held.response, NULL,
                        floor(extract(epoch FROM clock_timestamp() - held.started_at) * 1000)::bigint;
END
$$;

-- Extends leases of the owner. For each, by its index from 0: extended, busy (another transaction has locked the row; it is
-- still the owner's), or lost.
CREATE FUNCTION pawl.extend_leases(
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

-- For leases that are stored elsewhere, after the lease and before the call, in a statement of its own. It returns:
--   free
--   finished  the key is processed
--   parked    the message must wait for an earlier one of its record key
--   held      an attempt under a lease in this table is not completed
--   busy      a transaction records a call for the key
-- p_fence and p_record_key as in acquire_lease.
CREATE FUNCTION pawl.check_before_call(
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
    -- record_call holds this lock. The key is read in a later statement, which sees what record_call has committed.
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

-- The first statement of the transaction that records a call: ends its lease, and claims the key with the response. Raises
-- PW015 unless the lease is the caller's, even if it has expired: only another holder causes a rejection. Without p_owner the
-- lease is stored elsewhere, and only the key decides. p_synchronous_commit: of this transaction; NULL: as in the session,
-- but at least on disk. Returns the transaction's ID.
CREATE FUNCTION pawl.record_call(
    p_scope_id integer, p_key text, p_owner text, p_token bigint, p_payload_hash bigint, p_source_id integer,
    p_partition integer, p_offset bigint, p_response bytea, p_synchronous_commit text)
RETURNS xid8
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
BEGIN
    IF p_owner IS NOT NULL THEN
        DELETE FROM pawl.leases l
         WHERE l.scope_id = p_scope_id AND l.key = p_key AND l.owner = p_owner AND l.token = p_token;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the lease of the key no longer belongs to this attempt' USING ERRCODE = 'PW015';
        END IF;
    ELSE
        -- Until this is committed, check_before_call() returns busy.
        PERFORM pg_advisory_xact_lock(1885435751, hashtext(p_scope_id || ':' || p_key));
        DELETE FROM pawl.leases l WHERE l.scope_id = p_scope_id AND l.key = p_key AND l.owner IS NULL;
    END IF;
    INSERT INTO pawl.idempotency_keys (scope_id, key, payload_hash, source_id, partition, kafka_offset, response)
    VALUES (p_scope_id, p_key, p_payload_hash, p_source_id, p_partition, p_offset, p_response)
    ON CONFLICT (scope_id, key) DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the key was processed without this lease' USING ERRCODE = 'PW015';
    END IF;
    PERFORM set_config('pawl_message.claimed', p_scope_id || ':' || p_key, true);
    -- A call cannot be undone, so this commit must not be lost.
    IF p_synchronous_commit IS NOT NULL THEN
        PERFORM set_config('synchronous_commit', p_synchronous_commit, true);
    ELSIF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    RETURN pg_current_xact_id();
END
$$;

-- The attempt has ended without being recorded: 'not started' (and is not counted), 'not done' (this attempt did nothing),
-- 'unknown', or 'done' with its response, which the next attempt records. p_settled: it is known now that earlier attempts
-- did nothing, too. It may be repeated. False: the lease is no longer the caller's.
CREATE FUNCTION pawl.release_lease(
    p_scope_id integer, p_key text, p_owner text, p_token bigint, p_outcome text, p_settled boolean,
    p_response bytea)
RETURNS boolean
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
BEGIN
    UPDATE pawl.leases l
       SET owner = NULL, lease_until = NULL, changed_at = clock_timestamp(),
           done = p_outcome = 'done', response = p_response,
           attempt = l.attempt - (p_outcome = 'not started' AND l.owner IS NOT NULL)::integer,
           unknown_since = CASE p_outcome
                               WHEN 'done' THEN NULL
                               WHEN 'unknown' THEN CASE WHEN p_settled THEN l.started_at
                                                        ELSE least(l.unknown_since, l.started_at) END
                               ELSE CASE WHEN NOT p_settled THEN l.unknown_since END
                           END
     WHERE l.scope_id = p_scope_id AND l.key = p_key AND l.token = p_token
       AND (l.owner = p_owner OR l.owner IS NULL);
    RETURN FOUND;
END
$$;

-- An operator records an unknown outcome: done (with its response, for the next attempt to record) or not done. After that no
-- earlier attempt can change it. Raises PW016 if no outcome is unknown. Returns how many attempts there were.
CREATE FUNCTION pawl.resolve_lease(p_scope_id integer, p_key text, p_done boolean, p_response bytea)
RETURNS integer
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    held pawl.leases%ROWTYPE;
BEGIN
    SELECT * INTO held FROM pawl.leases l WHERE l.scope_id = p_scope_id AND l.key = p_key FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no attempt of this key is unresolved' USING ERRCODE = 'PW016',
            HINT = 'It is finished, or it never started: see `keys show`.';
    ELSIF pawl.lease_is_held(held) THEN
        RAISE EXCEPTION 'its call is in flight: process %, until %', held.owner, held.lease_until USING ERRCODE = 'PW016',
            HINT = 'Wait for its outcome.';
    END IF;
    UPDATE pawl.leases l
       SET owner = NULL, token = -1, lease_until = NULL, unknown_since = NULL, done = p_done,
           response = p_response, resolved_by = session_user, resolved_at = clock_timestamp(),
           changed_at = clock_timestamp()
     WHERE l.scope_id = p_scope_id AND l.key = p_key;
    RETURN held.attempt;
END
$$;
