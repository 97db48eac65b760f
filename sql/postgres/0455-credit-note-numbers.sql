-- The last number of credit notes per token (`202601`), taken in the finalizing transaction like those of invoices.
create table credit_note_numbers (
  tenant_id text not null,
  environment_id text not null,
  token text not null,
  last_number bigint not null,
  primary key (tenant_id, environment_id, token)
);
