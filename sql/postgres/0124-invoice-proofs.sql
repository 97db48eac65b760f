-- Digests of the events of usage lines on final invoices, made when somebody first asks for the proof of the invoice and kept from
-- then on (docs/decisions/0018-proof-of-an-invoice.md). Such a line is never taken away, so no foreign key looks for that: it
-- would cost every draft that is computed anew.
create table invoice_line_proofs (
  tenant_id text not null,
  environment_id text not null,
  invoice_line_item_id text not null,
  event_count bigint not null,
  root text not null,
  sealed_at timestamptz not null,
  primary key (tenant_id, environment_id, invoice_line_item_id)
);
