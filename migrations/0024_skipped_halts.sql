-- Why a partition had halted before a message that an operator then left out: the operator's own reason rarely says it.

ALTER TABLE pawl.skipped_messages ADD COLUMN halt_reason text;
COMMENT ON COLUMN pawl.skipped_messages.halt_reason IS
    'Why the partition had halted before the message when an operator skipped it. NULL: it had not halted, or no operator skipped it.';
