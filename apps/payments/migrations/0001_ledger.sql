-- The tables of the example. `scripts/migrate up --name payments --dir apps/payments/migrations`
-- creates them in the database of pawl's tables, as a set with a name of its own.

CREATE TABLE ledger (
    entry_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id   text NOT NULL,
    account    text NOT NULL,
    amount     bigint NOT NULL,
    entered_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN ledger.event_id IS
    'Deliberately without a unique constraint: only pawl ensures that a payment is entered once.';
COMMENT ON COLUMN ledger.amount IS 'In the currency''s smallest unit.';

CREATE TABLE accounts (
    id      text PRIMARY KEY,
    balance bigint NOT NULL DEFAULT 0,
    entries bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
COMMENT ON COLUMN accounts.entries IS 'Payments that were added to the balance.';
