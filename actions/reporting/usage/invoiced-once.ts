/** Reads the amounts that invoices have drawn from commitments, for usage that is priced line by line (docs/rules/commitments.md). */
import type { RecordedUsage } from '../../../core/rating/commitments/part.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { gatherInvoicedLines } from '../../invoicing/billing/gather-closed-charges.ts';
import { recordedUsage } from '../../invoicing/billing/gather-commitments.ts';

/** The invoices of a subscription are read once for all of its lines. */
export type InvoicedUsageReader = (subscription: SubscriptionModel) => Promise<RecordedUsage[]>;

export function createInvoicedUsageReader(database: Database): InvoicedUsageReader {
  const read = new Map<string, Promise<RecordedUsage[]>>();
  return (subscription) => {
    const known = read.get(subscription.id) ?? gatherInvoicedLines(database, subscription).then(recordedUsage);
    read.set(subscription.id, known);
    return known;
  };
}
