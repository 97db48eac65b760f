-- Lines say where they stand: the order of the lines of a subscription, and of an invoice, is a column of its own. Before
-- this, lines of one instant stood in the order of their ids, which were made for it. Null is what an API of the version before
-- writes while it is being replaced: such lines stand in that order still.
alter table subscription_line_items add column position integer;
update subscription_line_items line set position = placed.position
from (
  select id, row_number() over (partition by subscription_id order by created_at, id) - 1 as position
  from subscription_line_items
) placed
where placed.id = line.id;
create unique index subscription_line_items_position on subscription_line_items (subscription_id, position);

alter table invoice_line_items add column position integer;
update invoice_line_items line set position = placed.position
from (
  select id, row_number() over (partition by invoice_id order by created_at, id) - 1 as position
  from invoice_line_items
) placed
where placed.id = line.id;
create unique index invoice_line_items_position on invoice_line_items (invoice_id, position);
