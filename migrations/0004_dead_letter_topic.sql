-- The Kafka topic that is fed from the dead letters (dead_letters.topic). docs/failures.md has the rules.

ALTER TABLE pawl.dead_letters ADD COLUMN published_at timestamptz;
COMMENT ON COLUMN pawl.dead_letters.published_at IS
    'When Kafka had confirmed the letter in dead_letters.topic. NULL: not yet, or no such topic is configured.';

-- What is still to be fed. Only letters that wait for somebody are, so the index holds no more than
-- dead_letters_unresolved does, also where no topic is configured.
CREATE INDEX dead_letters_unpublished ON pawl.dead_letters (consumer_id, dead_letter_id)
    WHERE published_at IS NULL AND status IN ('dead', 'parked');

-- One process of a group feeds at a time, by a lease as in pawl.retention_state. Two at once would
-- store letters twice in the topic.
CREATE TABLE pawl.dead_letter_feed (
    consumer_id integer PRIMARY KEY REFERENCES pawl.consumers,
    holder      text,
    lease_until timestamptz
);
