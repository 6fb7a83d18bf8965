-- A consumer as its processes and its trouble leave it: partition 0 halted, 1 paused, the others with
-- an owner that is gone; letter 1 can be replayed, the others are many.
CREATE TABLE ledger (event_id text PRIMARY KEY, amount bigint NOT NULL);
INSERT INTO pawl.consumers (cluster, group_id) VALUES ('default', 'orders');
INSERT INTO pawl.consumer_topics (consumer_id, topic, partitions, start_policy)
VALUES (1, 'orders', :partitions, 'earliest');
INSERT INTO pawl.processed_kafka_offsets
       (consumer_id, topic, partition, last_processed_offset, base_offset, applied_count, owner, released,
        owner_epoch, state, halt_kind, halt_code, halt_offset, halt_handler, halt_cause, halt_parameters,
        operator_reason)
SELECT 1, 'orders', n, 1000 + n, 0, 1001 + n, 'host-' || n % 7 || ':41:00c0ffee', n % 5 = 4, 3,
       CASE n WHEN 0 THEN 'halted' WHEN 1 THEN 'paused' ELSE 'running' END,
       CASE n WHEN 0 THEN 'message' END, CASE n WHEN 0 THEN 'message_failed' END, CASE n WHEN 0 THEN 1001 END,
       CASE n WHEN 0 THEN 'book' END,
       CASE n WHEN 0 THEN 'insert or update on table "ledger" violates foreign key constraint "ledger_account"' END,
       CASE n WHEN 0 THEN '{"sqlstate": "23503", "attempts": 5}'::jsonb END,
       CASE n WHEN 1 THEN 'by bert (dashboard): the bank is unreachable' END
  FROM generate_series(0, :partitions - 1) AS n;
INSERT INTO pawl.dead_letters
       (consumer_id, topic, partition, kafka_offset, timestamp_ms, status, reason, handler, idempotency_key,
        sqlstate, error, error_detail, attempts, record_key, record_key_hash, record_value, value_bytes,
        headers, payload, message_digest)
SELECT 1, 'orders', n % :partitions, n, 1760000000000 + n, 'dead', CASE n % 3 WHEN 0 THEN 'failed' ELSE 'rejected' END,
       'book', 'event-' || n, CASE n % 3 WHEN 0 THEN '23503' ELSE '22P02' END,
       'insert or update on table "ledger" violates foreign key constraint "ledger_account"',
       'Key (account)=(a-' || n || ') is not present in table "accounts".', 5,
       convert_to('account-' || n, 'UTF8'), sha256(convert_to('account-' || n, 'UTF8')),
       convert_to('{"amount": ' || n || ', "account": "a-' || n || '", "note": "' || repeat('paid by card ', 20) || '"}', 'UTF8'),
       300, jsonb_build_array(jsonb_build_object('name', 'event-id',
              'value', encode(convert_to('event-' || n, 'UTF8'), 'base64'))), 'complete',
       sha256(convert_to(n::text, 'UTF8'))
  FROM generate_series(1, :letters) AS n;
INSERT INTO pawl.offset_history (consumer_id, topic, partition, action, from_offset, to_offset, halt_code, reason)
VALUES (1, 'orders', 0, 'halt', 1001, 1001, 'message_failed', 'insert or update on table "ledger" failed');
INSERT INTO pawl.process_conditions (consumer_id, owner, conditions, seen_at)
VALUES (1, 'host-1:41:00c0ffee', jsonb_build_array(
         jsonb_build_object('kind', 'remote_service_unreachable', 'subject', 'https://api.example', 'topic', '',
           'partition', -1, 'since_ms', 1800000000000, 'messages', 12, 'cause', 'Connection refused'),
         jsonb_build_object('kind', 'partition_blocked', 'subject', 'orders[6]', 'topic', 'orders',
           'partition', 6, 'since_ms', 1800000000000, 'messages', 7, 'cause', 'session 42 (user bert) holds the lock')),
        now() + interval '1 day');
ANALYZE;
