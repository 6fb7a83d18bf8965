-- pawl: stop-programs
-- Programs of before keep an older epoch where they know none: what is forgotten here would come back.

-- leader_epoch is that of the record at the stored offset from now on (KIP-320), so that Kafka can be
-- asked whether its log still holds that record. Until now a step over the end of a log kept the epoch
-- of an older record, for which Kafka may rightly name an earlier end. Unknown is compared with nothing.
UPDATE pawl.processed_kafka_offsets SET leader_epoch = NULL;
COMMENT ON COLUMN pawl.processed_kafka_offsets.leader_epoch IS
    'Leader epoch (KIP-320) of the record at last_processed_offset; NULL: unknown.';
