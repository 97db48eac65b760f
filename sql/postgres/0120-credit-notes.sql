-- Credit notes: what of a final invoice is taken back, line by line. What is left of a line is decided under the lock on the invoice's row.
create table credit_notes (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  credit_note_number text not null,
  invoice_id text not null references invoices (id),
  customer_id text not null,
  subscription_id text,
  credit_note_status text not null,
  credit_note_type text not null,
  refund_status text,
  reason text not null,
  memo text not null default '',
  currency text not null,
  subtotal numeric not null,
  total_tax numeric not null default 0,
  total_amount numeric not null,
  idempotency_key text,
  voided_at timestamptz,
  finalized_at timestamptz,
  metadata jsonb,
  check (total_amount > 0 and total_tax >= 0 and total_amount = subtotal + total_tax)
);
create index credit_notes_list on credit_notes (tenant_id, environment_id, created_at desc, id desc);
create index credit_notes_invoice on credit_notes (tenant_id, environment_id, invoice_id);
create index credit_notes_status on credit_notes (tenant_id, environment_id, credit_note_status, created_at, id)
  where credit_note_status <> 'FINALIZED';
create index credit_notes_type on credit_notes (tenant_id, environment_id, credit_note_type, created_at, id);
create unique index credit_notes_number on credit_notes (tenant_id, environment_id, credit_note_number);
-- A request that comes again makes no second note.
create unique index credit_notes_idempotency_key on credit_notes (tenant_id, environment_id, idempotency_key)
  where credit_note_status <> 'VOIDED' and status = 'published';

create table credit_note_line_items (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  credit_note_id text not null references credit_notes (id),
  invoice_line_item_id text not null references invoice_line_items (id),
  display_name text not null default '',
  amount numeric not null,
  tax_amount numeric not null default 0,
  currency text not null,
  metadata jsonb,
  position integer not null,
  check (amount > 0 and tax_amount >= 0)
);
create index credit_note_line_items_note on credit_note_line_items (tenant_id, environment_id, credit_note_id);

-- What gives a line back names it: looked for by whoever gives back more of it.
create index invoice_line_items_parent on invoice_line_items (tenant_id, environment_id, parent_line_item_id)
  where parent_line_item_id is not null;
