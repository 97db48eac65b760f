/**
 * Refunds of a payment at Whop, each made once. Whop's refunds do not contain our id: after a lost answer a refund is recognized by its amount
 * and time, and because more is refunded there than is recorded here.
 */
import { sumDecimals } from '../../core/foundation/decimal.ts';
import type { AccountRefund } from '../account-payments.ts';
import type { RefundOutcome } from '../payment-provider.ts';
import { isRefused, ProviderError } from '../provider-error.ts';
import { fromWhopAmount, toWhopAmount } from './amounts.ts';
import type { WhopClient } from './client.ts';
import { CLOCK_SLACK_MS } from './create-invoice.ts';
import type { WhopPayment, WhopRefund } from './records.ts';
import { findRefundStatus } from './states.ts';

export async function refundOnce(
  client: WhopClient,
  payment: WhopPayment,
  refund: AccountRefund,
): Promise<RefundOutcome> {
  const earlier = findMade(payment, refund);
  if (earlier !== null) return toRefundOutcome(earlier);
  const body = { partial_amount: toWhopAmount(refund.amount, refund.currency) };
  try {
    const answer = await client.post<WhopPayment>(`payments/${payment.id}/refund`, { body, key: refund.key });
    return toRefundOutcome(findAdded(payment, answer, refund));
  } catch (error) {
    if (!isRefused(error)) throw error;
    return { outcome: 'failed', error: error.message };
  }
}

function findMade(payment: WhopPayment, refund: AccountRefund): WhopRefund | null {
  const { amount, requested_at, refunded_before = '0' } = refund;
  const listed = payment.refunds ?? [];
  const valid = listed.filter((one) => findRefundStatus(one) !== 'failed');
  const unrecorded = sumDecimals(valid.map((one) => fromWhopAmount(one.amount))).minus(refunded_before);
  const isSince = (one: WhopRefund, since_ms: number) =>
    fromWhopAmount(one.amount).eq(amount) && Date.parse(one.created_at) >= since_ms;
  const since_ms = requested_at.getTime();
  const made = unrecorded.lt(amount) ? undefined : valid.find((one) => isSince(one, since_ms - CLOCK_SLACK_MS));
  // A refund that failed after it was accepted is not made again.
  return made ?? listed.find((one) => !valid.includes(one) && isSince(one, since_ms)) ?? null;
}

/** Finds the refund that the request added. */
function findAdded(before: WhopPayment, after: WhopPayment, { amount }: AccountRefund): WhopRefund {
  const known = new Set((before.refunds ?? []).map(({ id }) => id));
  const added = (after.refunds ?? []).filter(({ id }) => !known.has(id));
  const found = added.find((one) => fromWhopAmount(one.amount).eq(amount)) ?? added[0];
  if (found !== undefined) return found;
  throw new ProviderError('wait', `Whop does not list the refund of ${before.id} yet`, { is_of_record: true });
}

function toRefundOutcome(refund: WhopRefund): RefundOutcome {
  const gateway_refund_id = refund.id;
  const outcome = findRefundStatus(refund);
  return outcome === 'failed'
    ? { outcome, error: `the refund is ${refund.status} at Whop` }
    : { outcome, gateway_refund_id };
}
