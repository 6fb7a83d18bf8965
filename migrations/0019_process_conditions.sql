-- What the messages of each live process wait for outside of it: an endpoint that cannot be reached, a lock in
-- PostgreSQL. For `pawl status`; nothing else depends on it.
CREATE TABLE pawl.process_conditions (
    consumer_id integer NOT NULL,
    owner       text NOT NULL,
    conditions  jsonb NOT NULL,
    seen_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer_id, owner)
) WITH (fillfactor = 50);
COMMENT ON TABLE pawl.process_conditions IS
    'What the messages of a live process wait for; a row that was not written for 20 s belongs to a process that is gone.';
COMMENT ON COLUMN pawl.process_conditions.conditions IS
    'Array of {"kind", "what", "topic", "partition", "since_ms", "messages", "cause"}.';
