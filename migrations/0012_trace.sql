-- What a handler publishes for a message with a trace belongs to that trace: the record in Kafka has the
-- headers traceparent and tracestate of the message (W3C Trace Context), unless it has some of its own.

-- p_headers in the form in which they are stored; NULL: there are none. pawl_message.trace, which the claim
-- sets: the traceparent of 55 characters, and behind a blank the tracestate. It ends with the transaction.
CREATE FUNCTION pawl.traced_headers(p_headers jsonb)
RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    trace text := current_setting('pawl_message.trace', true);
    added jsonb;
BEGIN
    -- Whoever sets it to something else publishes without it.
    IF trace IS NULL OR trace !~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}($| .)'
       OR EXISTS (SELECT FROM jsonb_array_elements(p_headers) h
                   WHERE lower(h ->> 'name') IN ('traceparent', 'tracestate')) THEN
        RETURN p_headers;
    END IF;
    SELECT jsonb_agg(jsonb_build_object('name', h.name, 'value',
                     translate(encode(convert_to(h.value, 'UTF8'), 'base64'), E'\n', '')) ORDER BY h.place)
      INTO added
      FROM (VALUES (1, 'traceparent', left(trace, 55)), (2, 'tracestate', substr(trace, 57))) h (place, name, value)
     WHERE h.value <> '';
    RETURN coalesce(p_headers, '[]') || added;
END
$$;
COMMENT ON FUNCTION pawl.traced_headers(jsonb) IS
    'These headers with those of the trace of the message that this transaction processes, unless they have some.';

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
    -- A trace makes nothing too long that was not so without it, so it is not counted.
    INSERT INTO pawl.outbox (outbox_id, lane, topic, record_key, record_value, headers, event_id)
    VALUES (number,
            CASE WHEN key IS NULL THEN number % settings.lanes
                 ELSE get_byte(sha256(convert_to(topic, 'UTF8') || '\x00'::bytea || key), 0) % settings.lanes END,
            topic, key, value, pawl.traced_headers(stored), id);
    RETURN id;
END
$$;
