-- The message that a partition halts at, apart from the reason's text: for status, and for the event
-- that a process which acquires the halted partition reports.
ALTER TABLE pawl.processed_kafka_offsets
    ADD COLUMN halt_offset bigint;
COMMENT ON COLUMN pawl.processed_kafka_offsets.halt_offset IS
    'Offset of the message that halts the partition; NULL when none does (kind position). Of no meaning unless state is halted.';
