-- Which processes of a consumer work on partitions now, and what each does with a topic's messages, so
-- that two which do different things with one topic are told. Only for warnings. Every process tells
-- its rows again and again, and takes them away at its end; docs/operations.md says how they are used.
CREATE TABLE pawl.processes (
    consumer_id integer NOT NULL,
    owner       text NOT NULL,
    topic       text COLLATE "C" NOT NULL,
    handlers    text NOT NULL,
    conditions  text NOT NULL,
    keys        text NOT NULL,
    policies    text NOT NULL,
    seen_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer_id, owner, topic)
) WITH (fillfactor = 20);
COMMENT ON TABLE pawl.processes IS
    'What each live process of a consumer does with a topic, as digests; a row that is not told again for 20 s is of a process that is gone.';
