/**
 * Commitments of a subscription (docs/rules/commitments.md): its own terms, and the usage and true-ups that its invoices have charged so
 * far.
 */

import { Decimal } from '../../../core/foundation/decimal.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { RecordedUsage } from '../../../core/rating/commitments/part.ts';
import type { SubscriptionCommitment } from '../../../core/rating/commitments/subscription.ts';
import { compareDuration } from '../../../core/rating/commitments/term.ts';
import { toComputedCharge } from '../../../core/rating/computed-from.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import type { InvoicedLine } from './gather-closed-charges.ts';

/** Returns the commitment of the subscription; null if it has none. */
export function subscriptionCommitment(subscription: SubscriptionModel): SubscriptionCommitment | null {
  const { commitment_amount, overage_factor, enable_true_up, commitment_duration: duration } = subscription;
  if (!commitment_amount || new Decimal(commitment_amount).isZero()) return null;
  return {
    amount: new Decimal(commitment_amount),
    overage_factor: new Decimal(overage_factor ?? '1'),
    true_up: enable_true_up,
    duration: duration && compareDuration(duration, subscription) > 0 ? duration : null,
  };
}

/** Converts usage lines of other invoices; amounts are costs before any commitment. */
export function recordedUsage(lines: readonly InvoicedLine[]): RecordedUsage[] {
  return lines
    .filter(({ line, is_partial }) => line.price_type === 'USAGE' && !is_partial)
    .map(({ line, service }) => ({
      item_id: line.subscription_line_item_id ?? '',
      service,
      base_amount: new Decimal(line.computed_from?.base_amount ?? toComputedCharge(line).amount),
    }));
}

/** Lists the periods whose shortfall another invoice charges; void invoices do not count. */
export async function listRecordedTrueUps(
  database: Database,
  subscription: SubscriptionModel,
  exceptInvoiceId?: string,
): Promise<Period[]> {
  // True-ups are selected by subscription, because those of a child that is invoiced with its parent are on the parent's invoices.
  const lines = await InvoiceLineItemModel.in(subscription, database)
    .where({ subscription_id: subscription.id, status: 'published' })
    .whereNull('subscription_line_item_id')
    .whereRaw(`computed_from ->> 'kind' = 'true_up'`);
  const invoices = await InvoiceModel.byId(
    subscription,
    lines.map(({ invoice_id }) => invoice_id),
    database,
  );
  const charged = lines.filter(({ invoice_id }) => {
    const invoice = invoices.get(invoice_id);
    return invoice_id !== exceptInvoiceId && invoice?.status === 'published' && invoice.invoice_status !== 'VOIDED';
  });
  return charged.map(({ period_start, period_end }) => ({
    start: toInstant(period_start ?? ''),
    end: toInstant(period_end ?? ''),
  }));
}
