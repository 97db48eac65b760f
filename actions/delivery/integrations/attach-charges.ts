/**
 * Applies charges to the provider's copy of an invoice, if they were taken while the invoice was being pushed: the id of the copy was not
 * yet known then (docs/decisions/0025-charges-of-pushed-invoices.md). A repeated application has no effect. A rejected one waits for a
 * person.
 */
import type { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import type { PaymentModel } from '../../../storage/models/payments/payment.ts';
import type { PushTarget } from '../../foundation/connections/push-record.ts';

type ChargedCounterpart = { readonly mapping: IntegrationMappingModel; readonly payments: readonly PaymentModel[] };

export async function attachCharges(
  { mapping: { provider_entity_id, sent_invoice }, payments }: ChargedCounterpart,
  { connection, call }: PushTarget,
): Promise<void> {
  if (sent_invoice === null) return;
  for (const { id, payment_gateway, connection_id, gateway_payment_id } of payments) {
    const isCharge = payment_gateway === connection.provider_type && !connection_id && gateway_payment_id;
    if (!isCharge || sent_invoice.contained_ids.includes(id)) continue;
    const charge = { provider_invoice_id: provider_entity_id!, gateway_payment_id, payment_id: id };
    await call(async (account) => account.attachPayment?.(charge));
  }
}
