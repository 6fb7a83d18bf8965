-- Records that end a process while it fetches them, before a handler gets anything: those that need more memory, once they
-- are decompressed, than the process has.

CREATE TABLE pawl.first_fetches (
    consumer_id  integer NOT NULL REFERENCES pawl.consumers,
    topic        text COLLATE "C" NOT NULL,
    partition    integer NOT NULL,
    begun_epoch  bigint,
    kafka_offset bigint,
    crashes      integer NOT NULL DEFAULT 0,
    fetched_by   text,
    PRIMARY KEY (consumer_id, topic, partition)
);
COMMENT ON TABLE pawl.first_fetches IS
    'What became of the first fetch after an acquire, where the stored offset does not show it. Most partitions have no row.';
COMMENT ON COLUMN pawl.first_fetches.begun_epoch IS
    'Owner epoch: since the acquire that raised it, a message or the end of the log has arrived.';
COMMENT ON COLUMN pawl.first_fetches.crashes IS
    'Processes in a row that ended while kafka_offset was to be fetched next. Of no meaning at another offset.';
COMMENT ON COLUMN pawl.first_fetches.fetched_by IS
    'The owner that fetches the partition alone now, until something arrives. NULL: none does.';
