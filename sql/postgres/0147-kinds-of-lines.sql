-- What a line is, and what it is less, as fields: until now its reason said so, in words (docs/rules/invoices.md, "What a line was computed
-- from"). How many units other invoices say of a charge no words said: of earlier lines that stays null.
update invoice_line_items
set computed_from = computed_from || jsonb_build_object('kind', substring(computed_from ->> 'reason' from '^([a-z_]+):'))
where computed_from ->> 'reason' ~ '^(overage|true_up|unused_time|resumed|late_events|corrected_events|threshold_surplus):';

update invoice_line_items
set computed_from = computed_from || jsonb_build_object('of_term', jsonb_build_object(
  'used', substring(computed_from ->> 'reason' from '^true_up: (-?[0-9.]+) of '),
  'committed', substring(computed_from ->> 'reason' from '^true_up: -?[0-9.]+ of (-?[0-9.]+) were used')))
where computed_from ->> 'reason' ~ '^true_up: -?[0-9.]+ of -?[0-9.]+ were used';

update invoice_line_items
set computed_from = computed_from || jsonb_build_object('less', jsonb_build_object(
  'amount', substring(computed_from ->> 'reason' from 'less (-?[0-9.]+) that '),
  'quantity', null,
  'invoiced', case when computed_from ->> 'reason' ~ 'that other invoices say of it$' then 'by_other_invoices'
    else 'before_period_end' end))
where computed_from ->> 'reason' ~ 'less -?[0-9.]+ that (other invoices say of it|was invoiced before the period was over)$';
