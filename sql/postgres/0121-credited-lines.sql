-- A change that would give back a charge looks for what credit notes gave back of it.
create index credit_note_line_items_line on credit_note_line_items (tenant_id, environment_id, invoice_line_item_id);
