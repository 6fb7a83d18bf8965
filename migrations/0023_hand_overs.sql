-- A process that lives, or ends in order, gives a partition back while messages of it are on probation. The next owner
-- cannot conclude that from a session that has ended.

ALTER TABLE pawl.processed_kafka_offsets ADD COLUMN suspects_left boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN pawl.processed_kafka_offsets.suspects_left IS
    'If released: messages were on probation then, and the next owner goes on with that.';
