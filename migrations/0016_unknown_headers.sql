-- Headers that Kafka's client cannot read, and names of headers that are not UTF-8.

COMMENT ON COLUMN pawl.dead_letters.headers IS
    'Array of {"name": ..., "value": base64 or null}, in the producer''s order; a name that is not UTF-8 has its bytes in "name_base64". JSON null: the record has headers that Kafka''s client cannot read, and no replay is possible. NULL: not stored.';
COMMENT ON COLUMN pawl.skipped_messages.headers IS
    'Array of {"name": ..., "value": base64 or null}, in the producer''s order; a name that is not UTF-8 has its bytes in "name_base64". JSON null: the record has headers that Kafka''s client cannot read. NULL: not stored.';
