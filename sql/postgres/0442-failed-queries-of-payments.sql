-- The outcome of a charge may not become known by further queries: its provider no longer has it ('missing'), or a person has to resolve its
-- state there ('person'). A person may then decide the payment (docs/rules/payments.md, "Manual updates").
alter table payments add column query_failure text check (query_failure in ('missing', 'person'));
