-- A refund of what no provider took is made when it is written down (docs/rules/payments.md, "Refunds"). Those whose request died in between
-- were pending for ever, though the invoice and the wallet had it already.
update payment_refunds as refund
   set refund_status = 'succeeded', updated_at = now()
  from payments as payment
 where payment.tenant_id = refund.tenant_id and payment.environment_id = refund.environment_id and payment.id = refund.payment_id
   and refund.refund_status = 'pending'
   and (payment.payment_gateway is null or coalesce(payment.gateway_payment_id, '') = '');
