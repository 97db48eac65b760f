/** Previews and writes a modification that ends and begins lines, or that changes other records of the subscription. */

import { formatMs } from '../../../core/foundation/time/instant.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { previewSettlement, type SettledChange } from '../../invoicing/invoices/settle-change.ts';
import { type AppliedLines, applyLineChange } from '../subscriptions/apply-line-change.ts';
import type { LineChangePlan } from '../subscriptions/change-lines.ts';
import {
  type ChangedInvoice,
  type ChangedResources,
  toChangedLine,
  toChangedSubscriptions,
} from './changed-resources.ts';
import type { PlannedModification } from './modification.ts';

export function planLineModification(stores: Stores, plan: LineChangePlan): PlannedModification {
  return {
    preview: buildLinesPreview(plan),
    // A change of lines also raises the version of the subscription.
    changes: plan.ends.length + plan.begins.length > 0 ? { version: plan.subscription.version + 1 } : {},
    apply: async (transaction) => showLineChanges(await applyLineChange(stores, transaction, plan)),
  };
}

/** Plans a modification that changes no lines; it raises the version of the subscription, too. */
export function planOtherModification(
  subscription: SubscriptionModel,
  write: (transaction: Transaction) => Promise<void>,
): PlannedModification {
  const preview = toChangedSubscriptions([{ record: subscription, action: 'updated' }]);
  return {
    preview,
    changes: { version: subscription.version + 1 },
    apply: async (transaction) => {
      await write(transaction);
      return preview;
    },
  };
}

export function buildLinesPreview({ ends, begins, settlement, refunds }: LineChangePlan): ChangedResources {
  const ended = ends.map(({ item, at }) => toChangedLine({ ...item.line_item, end_date: formatMs(at) }, 'ended'));
  const begun = begins.map(({ line_item }) => toChangedLine({ ...line_item, id: '' }, 'created'));
  const unmade = new Set<string | null | undefined>(begins.map(({ id }) => id));
  const invoices = [settlement ?? [], ...refunds].flat().map((each) => {
    const invoice = previewSettlement(each, unmade);
    return toChangedInvoice({ invoice, wallet_transaction: null }, 'preview');
  });
  return { line_items: [...ended, ...begun], subscriptions: [], invoices };
}

export function showLineChanges({ ended, begun, settled, refunded }: AppliedLines): ChangedResources {
  const line_items = [
    ...ended.map((line) => toChangedLine(line, 'ended')),
    ...begun.map((line) => toChangedLine(line, 'created')),
  ];
  const invoices = [settled ?? [], ...refunded].flat().map((each) => toChangedInvoice(each, 'issued'));
  return { line_items, subscriptions: [], invoices };
}

function toChangedInvoice(
  { invoice, wallet_transaction }: Pick<SettledChange, 'invoice' | 'wallet_transaction'>,
  status: ChangedInvoice['status'],
): ChangedInvoice {
  const action = invoice.subtotal.startsWith('-') ? 'wallet_credit' : 'created';
  return { id: invoice.id, action, status, invoice, wallet_transaction };
}
