-- Kinds of records are written without a hyphen everywhere else.
update audit_entries set entity_type = replace(entity_type, 'add-on', 'addon')
  where entity_type in ('add-on', 'add-on_association');
