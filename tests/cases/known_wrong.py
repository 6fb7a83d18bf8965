"""Cases that are known to be wrong, with the reason. A run fails if another case is wrong, and also if one of these is right:
then remove it here."""

SQLSTATE_OF_DATA = "an SQLSTATE of class 42 or 0A that the data caused halts the partition, whatever the policy"

KNOWN_WRONG = {
    # blame.py
    "tsquery_of_a_user": SQLSTATE_OF_DATA,
    "ltree_path": SQLSTATE_OF_DATA,
    "tsvector_text": SQLSTATE_OF_DATA,
    "row_level_security": SQLSTATE_OF_DATA,
    "raised_42501": SQLSTATE_OF_DATA,
    "jsonpath_datetime": SQLSTATE_OF_DATA,
    # operations.py
    "killed_by_watchdog": "a transaction that a watchdog ends again and again (57P01) is never counted",
    # payloads.py, headers_keys.py, sql_shapes.py, configuration.py
    "byte_order_mark": "{/v} reads a value with a byte order mark, {value}::jsonb refuses it",
    "empty_header_then_field": "an empty header hides the field that stands after it in the template",
    "dollar_quote_before_brace": "$${ is the configuration's escape, and the error does not say so",
}
