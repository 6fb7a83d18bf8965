"""Cases that are known to be wrong, with the reason. A run fails if another case is wrong, and also if one of these is right:
then remove it here."""

KNOWN_WRONG = {
    # payloads.py, headers_keys.py, sql_shapes.py, configuration.py
    "byte_order_mark": "{/v} reads a value with a byte order mark, {value}::jsonb refuses it",
    "empty_header_then_field": "an empty header hides the field that stands after it in the template",
    "dollar_quote_before_brace": "$${ is the configuration's escape, and the error does not say so",
}
