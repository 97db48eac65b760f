-- Times of day with a commitment of their own are kept on the price. They change what is charged, so that a change of them is
-- stamped like one of the amount.
alter table prices add column commitment_time_buckets jsonb;

drop trigger prices_stamp_on_change on prices;
create trigger prices_stamp_on_change before update on prices
  for each row
  when (
    (old.start_date, old.end_date, old.status, old.amount, old.currency, old.type, old.billing_model,
     old.billing_period, old.billing_period_count, old.invoice_cadence, old.trial_period_days, old.meter_id,
     old.min_quantity, old.tiers, old.tier_mode, old.transform_quantity, old.price_unit_amount, old.price_unit_tiers,
     old.commitment_time_buckets)
    is distinct from
    (new.start_date, new.end_date, new.status, new.amount, new.currency, new.type, new.billing_model,
     new.billing_period, new.billing_period_count, new.invoice_cadence, new.trial_period_days, new.meter_id,
     new.min_quantity, new.tiers, new.tier_mode, new.transform_quantity, new.price_unit_amount, new.price_unit_tiers,
     new.commitment_time_buckets)
  )
  execute function stamp_price_sequence();
