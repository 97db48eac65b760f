-- The PDF of an invoice as it was last made, and of which version of the invoice: it can be made again, and old ones are taken away.
create table invoice_documents (
  tenant_id text not null,
  environment_id text not null,
  invoice_id text not null,
  invoice_version integer not null,
  bytes bytea not null,
  created_at timestamptz not null,
  primary key (tenant_id, environment_id, invoice_id)
);
create index invoice_documents_by_age on invoice_documents (created_at);
