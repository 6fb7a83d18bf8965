-- Responses that SQL handlers store with the idempotency keys of their messages (docs/responses.md), and how long
-- keys are kept for each of those that put some into a scope.

-- Stores what a statement of a handler returned, with the key that this transaction has claimed
-- (pawl_message.claimed); without one nothing. p_rows: how many rows it returned or touched, of which p_response is
-- the first one's value; p_expected: how many it must, NULL for any. Raises instead of answering, since COMMIT may
-- be on its way already. The key is found by the index, whatever the statistics say: a plan outlives them.
CREATE FUNCTION pawl.store_response(
    p_label text, p_rows bigint, p_expected bigint, p_response bytea, p_most bigint)
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    claimed text := nullif(current_setting('pawl_message.claimed', true), '');
BEGIN
    IF p_rows <> p_expected THEN
        RAISE EXCEPTION '% touched % rows, expect_rows demands %; nothing was stored', p_label, p_rows, p_expected
            USING ERRCODE = 'PW009';
    ELSIF p_rows > 1 THEN
        RAISE EXCEPTION '% returned % rows; a response is one row, or none', p_label, p_rows USING ERRCODE = 'PW013';
    ELSIF claimed IS NULL OR p_response IS NULL THEN
        RETURN;
    ELSIF octet_length(p_response) > p_most THEN
        RAISE EXCEPTION '%: the response has % bytes, idempotency.max_response allows %',
                        p_label, octet_length(p_response), p_most
            USING ERRCODE = 'PW014', HINT = 'Return less, or raise idempotency.max_response.';
    END IF;
    UPDATE pawl.idempotency_keys k SET response = p_response
     WHERE k.scope_id = split_part(claimed, ':', 1)::integer AND k.key = substr(claimed, strpos(claimed, ':') + 1);
END
$$;
COMMENT ON FUNCTION pawl.store_response(text, bigint, bigint, bytea, bigint) IS
    'Stores the response of an SQL handler with the key of its message.';

-- The same for many messages: p_places says for each response to which of p_keys it belongs, from 1. A key is NULL
-- where its message has none. Without p_keys it is the one message whose key this transaction has claimed.
CREATE FUNCTION pawl.store_responses(
    p_label text, p_most bigint, p_scope_id integer, p_keys text[], p_places bigint[], p_responses bytea[])
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
        RAISE EXCEPTION '% returned a row for message % of %; the first column counts them from 1',
                        p_label, coalesce(wrong.place::text, 'NULL'), cardinality(keys) USING ERRCODE = 'PW013';
    END IF;
    SELECT r.place, count(*) AS rows INTO wrong
      FROM unnest(p_places) AS r (place) GROUP BY r.place HAVING count(*) > 1 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% returned % rows for message % of %; a response is one row, or none',
                        p_label, wrong.rows, wrong.place, cardinality(keys) USING ERRCODE = 'PW013';
    END IF;
    SELECT octet_length(r.response) AS bytes INTO wrong
      FROM unnest(p_places, p_responses) AS r (place, response)
     WHERE octet_length(r.response) > p_most AND keys[r.place] IS NOT NULL LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '%: a response has % bytes, idempotency.max_response allows %', p_label, wrong.bytes, p_most
            USING ERRCODE = 'PW014', HINT = 'Return less, or raise idempotency.max_response.';
    END IF;
    UPDATE pawl.idempotency_keys k SET response = r.response
      FROM unnest(p_places, p_responses) AS r (place, response)
     WHERE k.scope_id = scope AND k.key = keys[r.place] AND r.response IS NOT NULL;
END
$$;
COMMENT ON FUNCTION pawl.store_responses(text, bigint, integer, text[], bigint[], bytea[]) IS
    'Stores the responses of a batch with the keys of its messages.';

-- ---- how long keys are kept -------------------------------------------------------------------------

-- Keys of a scope are kept for as long as the one of its topics wants it that wants it longest, whichever consumer's
-- it is, and whoever removes them.
ALTER TABLE pawl.scope_sources ADD COLUMN retention_ms bigint;
COMMENT ON COLUMN pawl.scope_sources.retention_ms IS
    'How long the topic''s consumer wants keys of the scope to be kept; 0: for ever. NULL: it has not said so.';

CREATE FUNCTION pawl.longer_retention(p_one_ms bigint, p_other_ms bigint)
RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN 0 IN (p_one_ms, p_other_ms) THEN 0 ELSE greatest(p_one_ms, p_other_ms) END
$$;
COMMENT ON FUNCTION pawl.longer_retention(bigint, bigint) IS
    'The longer one of two retentions, of which 0 is for ever and NULL unknown.';
