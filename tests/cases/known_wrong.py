"""Cases that are known to be wrong, with the reason. A run fails if another case is wrong, and also if one of these is right:
then remove it here."""

CHANGED_TYPE = "a statement keeps the parameter types that it was prepared with when a column's type changes"
TEXT_INTO_BYTEA = "text that is bound to bytea is read as bytea's escape format"
SQLSTATE_OF_DATA = "an SQLSTATE of class 42 or 0A that the data caused halts the partition, whatever the policy"
SEQUENCE = "sequences that logical replication left behind are not noticed"
INIT_MEMBERS = "pawl init leaves out members whose names the template's syntax has characters of"
CAST = "a cast directly after a placeholder types the parameter, so that a CASE around it does not guard"

KNOWN_WRONG = {
    # schema_changes.py, operations.py
    "widen_int": CHANGED_TYPE,
    "timestamp_to_timestamptz": CHANGED_TYPE,
    "real_to_numeric": CHANGED_TYPE,
    "text_to_uuid": CHANGED_TYPE,
    "int_to_text": CHANGED_TYPE,
    "enum_replaced": CHANGED_TYPE,
    "enum_replaced_with_cast": CHANGED_TYPE,
    "enum_replaced_flood": CHANGED_TYPE,
    "function_widened": CHANGED_TYPE,
    "compare_after_change": CHANGED_TYPE,
    "resume_after_stale_statement": CHANGED_TYPE,
    # sql_shapes.py, operations.py
    "value_into_bytea": TEXT_INTO_BYTEA,
    "init_not_json": TEXT_INTO_BYTEA,
    # blame.py
    "tsquery_of_a_user": SQLSTATE_OF_DATA,
    "ltree_path": SQLSTATE_OF_DATA,
    "tsvector_text": SQLSTATE_OF_DATA,
    "row_level_security": SQLSTATE_OF_DATA,
    "raised_42501": SQLSTATE_OF_DATA,
    "jsonpath_datetime": SQLSTATE_OF_DATA,
    # operations.py
    "sequences_behind": SEQUENCE,
    "outbox_sequence_behind_waiting": SEQUENCE,
    "init_member_names": INIT_MEMBERS,
    "init_on_odd_messages": INIT_MEMBERS,
    "killed_by_watchdog": "a transaction that a watchdog ends again and again (57P01) is never counted",
    # moving.py
    "case_does_not_guard": CAST,
    # payloads.py, headers_keys.py, sql_shapes.py, configuration.py
    "byte_order_mark": "{/v} reads a value with a byte order mark, {value}::jsonb refuses it",
    "empty_header_then_field": "an empty header hides the field that stands after it in the template",
    "dollar_quote_before_brace": "$${ is the configuration's escape, and the error does not say so",
    "bootstrap_forms": "forms of bootstrap_servers that cannot work are waited for instead of refused",
}
