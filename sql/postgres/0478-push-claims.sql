-- Claim of the attempt that sends the record now (docs/integrations/README.md, "Sending a record"): two attempts at once could create a
-- counterpart twice at a provider without idempotency keys. A claim expires by the clock of the database, for a process that ended without
-- releasing it. A released claim keeps its claimed_by, so that the next attempt knows of it.
alter table integration_mappings
  add column claimed_by text,
  add column claimed_until timestamptz;
