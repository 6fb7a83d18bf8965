-- What a handler publishes for a message has the same id whenever that message is processed. So a database
-- that came back behind, and processes messages again, publishes copies by whose id readers know them.

-- pawl_message.claimed: scope and idempotency key that this transaction has claimed; pawl_message.published: how
-- many ids were made for it. Both end with the transaction, and with a savepoint that is rolled back.
CREATE FUNCTION pawl.next_event_id()
RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    claimed text := nullif(current_setting('pawl_message.claimed', true), '');
    ordinal bigint := coalesce(nullif(current_setting('pawl_message.published', true), ''), '0')::bigint + 1;
    scope text;
BEGIN
    IF claimed IS NULL THEN
        RETURN gen_random_uuid()::text;
    END IF;
    PERFORM set_config('pawl_message.published', ordinal::text, true);
    -- By its name: the numbers of scopes begin again in a database that is set up anew.
    SELECT s.name INTO STRICT scope FROM pawl.idempotency_scopes s
     WHERE s.scope_id = split_part(claimed, ':', 1)::integer;
    -- The lengths keep scope, key and ordinal apart, whatever they hold.
    RETURN encode(sha256(convert_to(
        format('%s:%s:%s%s', ordinal, length(scope), scope, substr(claimed, strpos(claimed, ':'))), 'UTF8')), 'hex');
END
$$;
COMMENT ON FUNCTION pawl.next_event_id() IS
    'The id of a message that is published without one: made of scope, idempotency key and the number of the call, where a message of one key is processed; else random.';

CREATE OR REPLACE FUNCTION pawl.publish(
    topic text, key bytea, value bytea, headers jsonb DEFAULT NULL, event_id text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    settings pawl.outbox_settings%ROWTYPE;
    stored jsonb := pawl.outbox_headers(headers);
    id text := coalesce(event_id, pawl.next_event_id());
    bytes bigint := coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0)
                    + coalesce(octet_length(stored::text), 0);
    number bigint;
BEGIN
    IF topic IS NULL OR topic !~ '^[a-zA-Z0-9._-]{1,249}$' OR topic IN ('.', '..') THEN
        RAISE EXCEPTION 'pawl.publish: % is no name of a Kafka topic', coalesce(quote_literal(left(topic, 300)), 'NULL')
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'It has 1 to 249 letters, digits, dots, underscores and hyphens.';
    ELSIF id = '' OR octet_length(id) > 1000 THEN
        RAISE EXCEPTION 'pawl.publish: an event_id has 1 to 1000 bytes, not %', octet_length(id)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Leave it out and it is made.';
    END IF;
    SELECT * INTO STRICT settings FROM pawl.outbox_settings;
    IF bytes > settings.max_message THEN
        RAISE EXCEPTION 'pawl.publish: key, value and headers have % bytes, more than %', bytes, settings.max_message
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'Raise outbox.max_message of whoever relays, and max.message.bytes of the topic.';
    END IF;
    number := nextval('pawl.outbox_outbox_id_seq');
    INSERT INTO pawl.outbox (outbox_id, lane, topic, record_key, record_value, headers, event_id)
    VALUES (number,
            CASE WHEN key IS NULL THEN number % settings.lanes
                 ELSE get_byte(sha256(convert_to(topic, 'UTF8') || '\x00'::bytea || key), 0) % settings.lanes END,
            topic, key, value, stored, id);
    RETURN id;
END
$$;
