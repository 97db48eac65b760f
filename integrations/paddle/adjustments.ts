/**
 * Adjustments at Paddle: refunds and credits of the items of a transaction
 * (developer.paddle.com/build/transactions/create-transaction-adjustments). They have no `custom_data`, so the reason
 * contains our id. They can be neither changed nor deleted.
 */

import { Decimal } from '../../core/foundation/decimal.ts';
import type { ReportedRefund } from '../../core/payments/provider-payments.ts';
import type { ExactJson } from '../exact-json.ts';
import type { RefundOutcome } from '../payment-provider.ts';
import { ProviderError } from '../provider-error.ts';
import { cutCharacters } from '../pushed-records.ts';
import { fromLowest, sumLowest } from './amounts.ts';
import type { PaddleClient } from './client.ts';
import { LINE_FIELD } from './items.ts';
import { type PaddleAdjustment, type PaddleTransaction } from './records.ts';

const PAGE = '50';
const REASON_MAX = 200;

type AdjustmentKind = 'credit note' | 'refund';

function toMark(kind: AdjustmentKind, id: string): string {
  return `Farthing ${kind} ${id}`;
}

export function findAdjustment(
  adjustments: readonly PaddleAdjustment[],
  kind: AdjustmentKind,
  id: string,
): PaddleAdjustment | undefined {
  return adjustments.find(({ reason }) => readMark(reason, kind) === id);
}

/** Returns the id of our record from the reason; null for an adjustment that a person made. */
function readMark(reason: string, kind: AdjustmentKind): string | null {
  return new RegExp(`^${toMark(kind, '(\\S+?)')}(?::|$)`).exec(reason)?.[1] ?? null;
}

export async function listAdjustments(client: PaddleClient, transaction_id: string): Promise<PaddleAdjustment[]> {
  return await client.list<PaddleAdjustment>('adjustments', { transaction_id, per_page: PAGE });
}

type AdjustmentInput = {
  readonly action: 'credit' | 'refund';
  readonly kind: AdjustmentKind;
  readonly id: string;
  readonly reason: string;
  /** Net amount in the lowest denomination. */
  readonly net: Decimal;
  /** Net amounts by the line of ours to which they belong. The rest is taken from any item. */
  readonly by_line: ReadonlyMap<string, Decimal>;
  readonly transaction: PaddleTransaction;
  readonly earlier: readonly PaddleAdjustment[];
};

/** Creates an adjustment of net amounts, to which Paddle adds its tax. */
export async function createAdjustment(client: PaddleClient, input: AdjustmentInput): Promise<PaddleAdjustment> {
  const { action, kind, id, reason, transaction } = input;
  const text = reason === '' ? toMark(kind, id) : `${toMark(kind, id)}: ${cutCharacters(reason, REASON_MAX)}`;
  return await client.create<PaddleAdjustment>('adjustments', {
    action,
    type: 'partial',
    tax_mode: 'external',
    transaction_id: transaction.id,
    reason: text,
    items: allocate(input),
  });
}

type RestOfItem = { readonly item_id: string; readonly line_item_id: string | null; readonly rest: Decimal };

/** Distributes the net amount over the items. An item of which nothing remains is adjusted in full, with the rest of its tax. */
function allocate({ net, by_line, transaction, earlier }: AdjustmentInput): ExactJson[] {
  let left = net;
  const taken = new Map<string, Decimal>();
  const rests = listRests(transaction, earlier);
  const take = ({ item_id, rest }: RestOfItem, wanted: Decimal) => {
    const before = taken.get(item_id) ?? new Decimal(0);
    const amount = Decimal.min(wanted, left, rest.minus(before));
    taken.set(item_id, before.plus(amount));
    left = left.minus(amount);
  };
  for (const item of rests) take(item, by_line.get(item.line_item_id ?? '') ?? new Decimal(0));
  for (const item of rests) take(item, left);
  if (!left.isZero())
    throw new ProviderError(
      'person',
      `${fromLowest(net.minus(left), transaction.currency_code)} ${transaction.currency_code.toLowerCase()} of ${transaction.id} can still be refunded or credited at Paddle, not ${fromLowest(net, transaction.currency_code)}`,
    );
  return rests.flatMap(({ item_id, rest }) => {
    const amount = taken.get(item_id)!;
    if (amount.isZero()) return [];
    return amount.eq(rest) ? [{ item_id, type: 'full' }] : [{ item_id, type: 'partial', amount: amount.toFixed() }];
  });
}

/** Statuses of adjustments that lower what can still be adjusted. */
const IN_FORCE: readonly string[] = ['approved', 'pending_approval'];

/** Lists the net amount of each item that is not refunded or credited yet. */
function listRests({ items, details }: PaddleTransaction, earlier: readonly PaddleAdjustment[]): RestOfItem[] {
  const adjusted = earlier
    .filter(({ action, status }) => (action === 'credit' || action === 'refund') && IN_FORCE.includes(status))
    .flatMap((adjustment) => adjustment.items);
  return details.line_items.map(({ id: item_id, price_id, totals }) => {
    const price = items.find((item) => item.price.id === price_id)?.price;
    const line_item_id = price?.custom_data?.[LINE_FIELD];
    const before = sumLowest(adjusted.filter((one) => one.item_id === item_id).map((one) => one.totals.subtotal));
    return {
      item_id,
      line_item_id: typeof line_item_id === 'string' ? line_item_id : null,
      rest: Decimal.max(0, new Decimal(totals.subtotal).minus(totals.discount).minus(before)),
    };
  });
}

/** Status of each refund. Paddle decides about most refunds of live accounts. */
const REFUND_STATUSES: Readonly<Record<string, ReportedRefund['refund_status']>> = {
  approved: 'succeeded',
  pending_approval: 'pending',
  rejected: 'failed',
  reversed: 'failed',
};

/** Refuses an unknown status, because it may mean that money moved; a person has to decide. */
function findRefundStatus({ id, status }: PaddleAdjustment): ReportedRefund['refund_status'] {
  const known = Object.hasOwn(REFUND_STATUSES, status) ? REFUND_STATUSES[status] : undefined;
  if (known === undefined)
    throw new ProviderError('person', `the refund ${id} has the status ${status} at Paddle`, { is_of_record: true });
  return known;
}

export function toRefundOutcome(refund: PaddleAdjustment): RefundOutcome {
  const outcome = findRefundStatus(refund);
  return outcome === 'failed'
    ? { outcome, error: `${refund.status}: Paddle did not make the refund ${refund.id}` }
    : { outcome, gateway_refund_id: refund.id };
}

/** Lists the net amounts of refunds. Refunds of tax alone are Paddle's own, for example after a tax number was added. */
export function listRefunds(adjustments: readonly PaddleAdjustment[], currency: string): ReportedRefund[] {
  return adjustments
    .filter(({ action, totals }) => action === 'refund' && new Decimal(totals.subtotal).gt(0))
    .map((refund) => ({
      provider_refund_id: refund.id,
      amount: fromLowest(refund.totals.subtotal, currency),
      refund_status: findRefundStatus(refund),
      error: findRefundStatus(refund) === 'failed' ? `${refund.status} by Paddle` : null,
      refund_id: readMark(refund.reason, 'refund'),
    }));
}

type PaddleCredit = {
  readonly id: string;
  /** Net amount and tax in the lowest denomination; negative if it takes a credit back. */
  readonly net: Decimal;
  readonly tax: Decimal;
  readonly credit_note_id: string | null;
};

export function listCredits(adjustments: readonly PaddleAdjustment[]): PaddleCredit[] {
  return adjustments
    .filter(({ action, status }) => (action === 'credit' || action === 'credit_reverse') && status === 'approved')
    .map(({ id, action, reason, totals }) => {
      const sign = action === 'credit' ? 1 : -1;
      return {
        id,
        net: new Decimal(totals.subtotal).times(sign),
        tax: new Decimal(totals.tax).times(sign),
        credit_note_id: readMark(reason, 'credit note'),
      };
    });
}
