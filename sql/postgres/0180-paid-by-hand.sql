-- What of amount_paid somebody has said, and no payment: the audit holds the rest against the payments of an invoice.
alter table invoices add column paid_by_hand numeric not null default 0;

-- Of those that are there: what their payments do not explain. Where these say more than was paid, the audit tells it.
update invoices i set paid_by_hand = i.amount_paid - m.came
  from (
    select i.id, coalesce(p.received, 0) - coalesce(r.surplus, 0) -
           case when i.invoice_status = 'VOIDED'
                then least(greatest(coalesce(p.received, 0) - coalesce(r.surplus, 0) - i.amount_paid, 0), coalesce(r.refunds, 0))
                else coalesce(r.refunds, 0) - (i.refunded_amount - coalesce(n.refunded, 0)) end as came
      from invoices i
      left join (select destination_id as id, sum(amount) as received from payments
                  where payment_status in ('SUCCEEDED', 'PARTIALLY_REFUNDED', 'REFUNDED') group by 1) p on p.id = i.id
      left join (select p.destination_id as id,
                        sum(r.amount) filter (where r.idempotency_key = 'surplus/' || r.payment_id
                                                and p.payment_status in ('SUCCEEDED', 'PARTIALLY_REFUNDED', 'REFUNDED')) as surplus,
                        sum(r.amount) filter (where r.idempotency_key <> 'surplus/' || r.payment_id) as refunds
                   from payment_refunds r join payments p on p.id = r.payment_id
                  where r.refund_status <> 'failed' group by 1) r on r.id = i.id
      left join (select invoice_id as id, sum(total_amount) as refunded from credit_notes
                  where credit_note_status = 'FINALIZED' and credit_note_type = 'REFUND' and status = 'published' group by 1) n on n.id = i.id
  ) m
 where m.id = i.id and i.amount_paid > m.came;
