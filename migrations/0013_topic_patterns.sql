-- Patterns among the topics of a consumer's handlers.

-- The topics that a pattern meant when the consumer met it first: they begin as kafka.start says. What it
-- means since came to be after that, so it begins at its log's start: nothing of it may be lost between its
-- first message and the first look at it.
CREATE TABLE pawl.topic_patterns (
    consumer_id  integer NOT NULL REFERENCES pawl.consumers,
    pattern      text COLLATE "C" NOT NULL,
    first_topics text[] COLLATE "C" NOT NULL,
    met_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer_id, pattern)
);
