-- A provider forgets the key of a request after a day (docs/rules/payments.md, "Never twice"). The age of a key is computed by the clock of the
-- database alone: created_at is by the clock of a process, which may be wrong.
alter table payments add column requested_at timestamptz;
update payments set requested_at = created_at
 where gateway_tracking_id is not null and payment_status in ('INITIATED', 'PENDING', 'PROCESSING', 'VOIDED') and status = 'published';

alter table payment_refunds add column requested_at timestamptz;
update payment_refunds set requested_at = created_at;
alter table payment_refunds alter column requested_at set default clock_timestamp(), alter column requested_at set not null;
