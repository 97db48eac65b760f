-- Money that did not pass through Stripe has no gateway, because Stripe cannot refund it (docs/rules/payments.md, "Paid at a provider"). Earlier
-- rows have one. Their id at Stripe proves it: that of a payment record or of an invoice payment, not of a payment intent or a charge.
update payments
   set payment_gateway = null, updated_at = now()
 where payment_gateway = 'stripe' and connection_id is not null and payment_method_type = 'OFFLINE'
   and (starts_with(gateway_payment_id, 'pr_') or starts_with(gateway_payment_id, 'inpay_'));

-- A refund of such a payment was requested from Stripe, which does not know it. It is a record only, and is complete at once.
update payment_refunds as refund
   set refund_status = 'succeeded', updated_at = now()
  from payments as payment
 where payment.tenant_id = refund.tenant_id and payment.environment_id = refund.environment_id and payment.id = refund.payment_id
   and refund.refund_status = 'pending' and payment.payment_gateway is null and payment.connection_id is not null;
