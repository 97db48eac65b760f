/** Lines, subscriptions and invoices that a change of a subscription changed, or would change in a preview. */

import type { WalletTransaction } from '../../../core/credits/wallet/record.ts';
import type { InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import type { Subscription, SubscriptionLineItem } from '../../../core/subscriptions/record.ts';

export type ChangedLineItem = Pick<SubscriptionLineItem, 'id' | 'price_id' | 'quantity' | 'start_date' | 'end_date'> & {
  change_action: 'created' | 'updated' | 'ended';
};
export type ChangedSubscription = {
  id: string;
  action: 'created' | 'updated';
  status: Subscription['subscription_status'];
  trial_end?: string | null;
  current_period_end?: string | null;
};
export type ChangedInvoice = {
  id: string;
  action: 'created' | 'wallet_credit';
  status: 'preview' | 'issued';
  invoice: InvoiceWithLines;
  wallet_transaction: WalletTransaction | null;
};
export type ChangedResources = {
  line_items: ChangedLineItem[];
  subscriptions: ChangedSubscription[];
  invoices: ChangedInvoice[];
};

export function toChangedLine(
  record: SubscriptionLineItem,
  change_action: ChangedLineItem['change_action'],
): ChangedLineItem {
  const { id, price_id, quantity, start_date, end_date } = record;
  return { id, price_id, quantity, start_date, end_date, change_action };
}

/** Returns the result of a change that affects only other subscriptions. */
export function toChangedSubscriptions(
  changes: readonly { record: Subscription; action: ChangedSubscription['action'] }[],
): ChangedResources {
  const subscriptions = changes.map(({ record: { id, subscription_status: status }, action }) => ({
    id,
    action,
    status,
    trial_end: null,
    current_period_end: null,
  }));
  return { line_items: [], subscriptions, invoices: [] };
}
