-- By which exemption of its customer an invoice was not taxed when it became final; null without one. What the customer is later changes
-- nothing of what the invoice says.
alter table invoices add column tax_exempt text check (tax_exempt in ('exempt', 'reverse'));

-- Of those that are there nobody has written it down: they go on to say what they say now.
update invoices i set tax_exempt = c.tax_exempt
  from customers c
 where c.tenant_id = i.tenant_id and c.environment_id = i.environment_id and c.id = i.customer_id
   and c.tax_exempt <> 'none' and i.finalized_at is not null;
