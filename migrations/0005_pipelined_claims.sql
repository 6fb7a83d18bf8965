-- Claims of messages whose transactions travel to the server together. docs/design.md has the rules.

-- Such a claim has to raise instead of answering that it claimed nothing: what follows it is on its way
-- already. It is asked before whether the key is there, so this happens only in a race.
CREATE FUNCTION pawl.refuse_claim()
RETURNS bytea
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the idempotency key was claimed meanwhile, or the record key is parked'
        USING ERRCODE = 'PW008';
END
$$;
COMMENT ON FUNCTION pawl.refuse_claim() IS
    'Ends a pipelined transaction whose message is a duplicate or has to wait; it is processed alone then.';

-- Which of these keys are there: their places among p_keys, from 0. By the index and each key by itself,
-- whatever the statistics say: a plan outlives them, and a table that was empty a moment ago grows by
-- thousands of rows a second.
CREATE FUNCTION pawl.known_keys(p_scope_id integer, p_keys text[], p_with_responses boolean)
RETURNS TABLE (place bigint, payload_hash bigint, response bytea)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
BEGIN
    RETURN QUERY
        SELECT asked.place - 1, k.payload_hash, k.response
          FROM unnest(p_keys) WITH ORDINALITY AS asked (key, place)
         CROSS JOIN LATERAL (SELECT i.payload_hash, CASE WHEN p_with_responses THEN i.response END AS response
                               FROM pawl.idempotency_keys i
                              WHERE i.scope_id = p_scope_id AND i.key = asked.key
                             OFFSET 0) k;
END
$$;
COMMENT ON FUNCTION pawl.known_keys(integer, text[], boolean) IS
    'The idempotency keys of a scope that are stored already, asked for many messages at once.';
