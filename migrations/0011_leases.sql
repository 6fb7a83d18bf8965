-- Leases of idempotency keys, for handlers whose effect is outside of the database (docs/effects.md). Who has the lease
-- of a key may call; the transaction that records the outcome ends the lease and claims the key.

-- One row for each key that is neither finished nor new. With an owner: it is being called, until lease_until by this
-- server's clock. Without: it waits for the next attempt.
CREATE TABLE pawl.leases (
    scope_id      integer NOT NULL,
    key           text COLLATE "C" NOT NULL,
    owner         text,
    token         bigint NOT NULL,
    lease_until   timestamptz,
    attempt       integer NOT NULL DEFAULT 1,
    begun_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
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
COMMENT ON COLUMN pawl.leases.token IS
    'Random, of the attempt in hand. Only who knows it and is the owner extends, gives back or finishes. -1: nobody''s.';
COMMENT ON COLUMN pawl.leases.unknown_since IS
    'When the first attempt began of which nobody knows whether it did anything; NULL: there is none.';
COMMENT ON COLUMN pawl.leases.done IS
    'It is known to be done, with this response: the next attempt records that and calls nothing.';

-- Calls that returned, or were cut off, when their lease was no longer theirs: another attempt may have been made
-- beside them.
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
COMMENT ON COLUMN pawl.lease_losses.returned IS
    'The call returned an outcome; false: it failed in a way that leaves it unknown.';

-- Takes the lease of a key for p_ttl_ms from now on, by this server's clock. How it ends (answer):
--   mine      the caller is to make attempt `attempt`; unknown_ms: so long ago began the first attempt that is unknown,
--             wait_ms: the last one of before (NULL: not known)
--   done      as mine, but it is known to be done: the response is to be recorded
--   pending   another one has it: `holder`, for wait_ms yet
--   finished  the key is processed; the message is a duplicate
--   parked    the message must wait behind an earlier one of its record key (p_record_key; NULL: not asked)
--   conflict  an attempt for another payload is unresolved; `holder`: of which message
-- With p_fence: raises PW001 unless the partition still has that epoch; the caller holds its lock shared.
--
-- The row first, and only then, in a statement of its own, the key: who looked first could find none, wait for the row
-- of one who finishes meanwhile, and call once more.
CREATE FUNCTION pawl.acquire_lease(
    p_scope_id integer, p_key text, p_owner text, p_token bigint, p_ttl_ms bigint, p_payload_hash bigint,
    p_any_payload boolean, p_source_id integer, p_partition integer, p_offset bigint,
    p_fence integer, p_epoch bigint, p_consumer_id integer, p_topic text, p_record_key bytea)
RETURNS TABLE (answer text, attempt integer, unknown_ms bigint, response bytea, holder text, wait_ms bigint)
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    held pawl.leases%ROWTYPE;
    fence pawl.partition_fences%ROWTYPE;
    until timestamptz := clock_timestamp() + make_interval(secs => p_ttl_ms / 1000.0);
    first timestamptz;
BEGIN
    IF p_fence IS NOT NULL THEN
        SELECT * INTO fence FROM pawl.partition_fences f WHERE f.fence_id = p_fence;
        IF fence.epoch IS DISTINCT FROM p_epoch THEN
            PERFORM pawl.refuse_finish(fence, p_epoch, NULL);
        END IF;
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

-- Extends what the owner holds of these. Of each, by its place from 0: extended, busy (another transaction has the row;
-- it is the owner's still) or lost.
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
               SET lease_until = clock_timestamp() + make_interval(secs => p_ttl_ms / 1000.0)
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

-- For leases that are kept elsewhere, behind the lease and before the call, in a statement of its own: free, finished
-- (the key is processed), parked (the message must wait behind an earlier one of its record key), held (an attempt
-- under a lease here is not finished: leases were kept here before) or busy (a transaction records a call for the key
-- right now). p_fence and p_record_key as in acquire_lease.
CREATE FUNCTION pawl.look_before_call(
    p_scope_id integer, p_key text, p_fence integer, p_epoch bigint, p_consumer_id integer, p_topic text,
    p_record_key bytea)
RETURNS text
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    fence pawl.partition_fences%ROWTYPE;
BEGIN
    IF p_fence IS NOT NULL THEN
        SELECT * INTO fence FROM pawl.partition_fences f WHERE f.fence_id = p_fence;
        IF fence.epoch IS DISTINCT FROM p_epoch THEN
            PERFORM pawl.refuse_finish(fence, p_epoch, NULL);
        END IF;
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

-- The first statement of the transaction that records a call: ends its lease, and claims the key with the response.
-- Raises PW015 unless the lease is the caller's, whenever it was to end: only another holder refuses it. Without
-- p_owner the lease is kept elsewhere, and only the key decides.
-- p_synchronous_commit: of this transaction; NULL: as the session has it, but at least the disk is waited for. Returns
-- the transaction's id.
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
            RAISE EXCEPTION 'the lease of the key is no longer this attempt''s' USING ERRCODE = 'PW015';
        END IF;
    ELSE
        -- As long as this is not committed, look_before_call() says busy.
        PERFORM pg_advisory_xact_lock(1885435751, hashtext(p_scope_id || ':' || p_key));
        DELETE FROM pawl.leases l WHERE l.scope_id = p_scope_id AND l.key = p_key AND l.owner IS NULL;
    END IF;
    INSERT INTO pawl.idempotency_keys (scope_id, key, payload_hash, source_id, partition, kafka_offset, response)
    VALUES (p_scope_id, p_key, p_payload_hash, p_source_id, p_partition, p_offset, p_response)
    ON CONFLICT (scope_id, key) DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the key was processed beside the lease' USING ERRCODE = 'PW015';
    END IF;
    PERFORM set_config('pawl_message.claimed', p_scope_id || ':' || p_key, true);
    -- What was called cannot be taken back, so this must not be either.
    IF p_synchronous_commit IS NOT NULL THEN
        PERFORM set_config('synchronous_commit', p_synchronous_commit, true);
    ELSIF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    RETURN pg_current_xact_id();
END
$$;

-- The attempt has ended without being recorded: 'not begun' (and is not counted), 'not done' (this attempt did nothing),
-- 'unknown', or 'done' with its response, which the next attempt records. p_settled: what earlier attempts did is known
-- now as well, to be nothing. May be repeated. False: the lease is not the caller's any more.
CREATE FUNCTION pawl.give_back_lease(
    p_scope_id integer, p_key text, p_owner text, p_token bigint, p_outcome text, p_settled boolean,
    p_response bytea)
RETURNS boolean
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
BEGIN
    UPDATE pawl.leases l
       SET owner = NULL, lease_until = NULL, changed_at = clock_timestamp(),
           done = p_outcome = 'done', response = p_response,
           attempt = l.attempt - (p_outcome = 'not begun' AND l.owner IS NOT NULL)::integer,
           unknown_since = CASE p_outcome
                               WHEN 'done' THEN NULL
                               WHEN 'unknown' THEN CASE WHEN p_settled THEN l.begun_at
                                                        ELSE least(l.unknown_since, l.begun_at) END
                               ELSE CASE WHEN NOT p_settled THEN l.unknown_since END
                           END
     WHERE l.scope_id = p_scope_id AND l.key = p_key AND l.token = p_token
       AND (l.owner = p_owner OR l.owner IS NULL);
    RETURN FOUND;
END
$$;

-- An operator says what nobody knew: done (with its response, for the next attempt to record) or not done. From then on
-- no attempt of before can say otherwise. Raises PW016 where there is nothing to be said. Returns how many attempts
-- there were.
CREATE FUNCTION pawl.resolve_lease(p_scope_id integer, p_key text, p_done boolean, p_response bytea)
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
    ELSIF held.owner IS NOT NULL AND held.lease_until > clock_timestamp() THEN
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
