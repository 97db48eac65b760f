-- Which coupon took what off a line: what is given back of it is given back of each. Null of lines before this.
alter table invoice_line_items add column discounts jsonb;

-- The line that a line goes on for, after a change of its quantity or its price: coupons of that work on it. Null where it follows none.
alter table subscription_line_items add column follows_line_item_id text;
