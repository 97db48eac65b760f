/**
 * Ends a trial at once, with the first invoice that must be paid, or moves its end to another future instant (docs/rules/subscriptions.md,
 * "Modifications").
 */

import { formatMs } from '../../../core/foundation/time/instant.ts';
import type { InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import { duePeriod } from '../../../core/rating/due.ts';
import { deriveStatusAfterInvoice } from '../../../core/subscriptions/payment-settings.ts';
import type { Subscription } from '../../../core/subscriptions/record.ts';
import { computeTrialEnding, parseTrialEnd } from '../../../core/subscriptions/trial.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { planOpeningInvoice } from '../../invoicing/billing/plan-invoices.ts';
import { toInvoiceRecord, toLineRecords } from '../../invoicing/records/invoice-records.ts';
import { currentPeriod, toBilledSubscription } from '../../rating/billable-items.ts';
import { endTrial, TRIAL_END } from '../subscriptions/end-trial.ts';
import type { ChangedInvoice, ChangedResources } from './changed-resources.ts';
import type { ModifyInput, PlannedModification } from './modification.ts';

export async function planTrialEnd(input: ModifyInput<'trial_end'>): Promise<PlannedModification> {
  const { subscription, params, author } = input;
  const now = author.now.getTime();
  const at = parseTrialEnd(params, subscription, now);
  const changes = computeTrialEnding(subscription, at);
  const changed = Object.assign(new SubscriptionModel(), subscription, changes);
  if (at > now) {
    const preview = buildChangedResources(changed, null);
    return { preview, changes, apply: async () => preview };
  }
  return {
    preview: await planTrialEndPreview(input, changed),
    changes,
    apply: (transaction) => applyEnd(input, transaction),
  };
}

async function planTrialEndPreview(
  { stores, database, author: { now } }: ModifyInput<'trial_end'>,
  subscription: SubscriptionModel,
): Promise<ChangedResources> {
  const due = duePeriod(toBilledSubscription(subscription), currentPeriod(subscription), now.getTime());
  const period = due?.next;
  if (!period) return buildChangedResources({ ...subscription, subscription_status: 'cancelled' }, null);
  const { plan } = await planOpeningInvoice(stores, database, { subscription, period, now });
  const record = toInvoiceRecord({ subscription, period, reason: TRIAL_END, plan }, '', now);
  const invoice = { ...record, idempotency_key: null, line_items: toLineRecords(plan, record, now) };
  const status = deriveStatusAfterInvoice(subscription.payment_behavior, record.amount_remaining);
  const after = { ...subscription, subscription_status: status, current_period_end: formatMs(period.end) };
  return buildChangedResources(
    after,
    plan.subtotal.isZero() ? null : { ...toIssuedInvoice(invoice), status: 'preview' },
  );
}

async function applyEnd(
  { stores, subscription, author }: ModifyInput<'trial_end'>,
  transaction: Transaction,
): Promise<ChangedResources> {
  const ending = await SubscriptionModel.fetch(subscription, subscription.id, { database: transaction, lock: true });
  const ended = await endTrial(stores, transaction, { subscription: ending, by: author });
  const { subscription: after, latest_invoice } = ended ?? { subscription: ending, latest_invoice: null };
  const isCharged = latest_invoice?.billing_reason === TRIAL_END;
  return buildChangedResources(after, isCharged ? toIssuedInvoice(latest_invoice) : null);
}

function toIssuedInvoice(invoice: InvoiceWithLines): ChangedInvoice {
  return { id: invoice.id, action: 'created', status: 'issued', invoice, wallet_transaction: null };
}

type SubscriptionAfterTrialEnd = Pick<Subscription, 'id' | 'subscription_status' | 'trial_end' | 'current_period_end'>;

function buildChangedResources(after: SubscriptionAfterTrialEnd, invoice: ChangedInvoice | null): ChangedResources {
  const { id, subscription_status: status, trial_end, current_period_end } = after;
  const subscriptions = [{ id, action: 'updated' as const, status, trial_end, current_period_end }];
  return { line_items: [], subscriptions, invoices: invoice ? [invoice] : [] };
}
