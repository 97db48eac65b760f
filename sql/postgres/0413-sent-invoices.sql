-- The amounts with which an invoice was first sent to a provider, and the payments and credit notes that they contain
-- (docs/integrations/README.md, "Money after the invoice"). A repeated push sends the same amounts.
alter table integration_mappings add column sent_invoice jsonb;
