-- Whether a line ends because its price does, so that a price that comes later goes on where it ends; one that ends by itself, with a
-- phase or by a change, is followed by nothing. Of lines that were there: those that end where their price does, or after it.
alter table subscription_line_items add column ends_with_price boolean;
update subscription_line_items line set ends_with_price = true
  from prices price
  where price.id = line.price_id and price.tenant_id = line.tenant_id and price.environment_id = line.environment_id
    and line.end_date >= price.end_date;
