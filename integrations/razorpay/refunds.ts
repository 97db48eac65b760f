/** Refunds of a payment at Razorpay: made once per key, and listed with their states (razorpay.com/docs/payments/refunds). */
import type { Refunds } from 'razorpay/dist/types/refunds.js';
import { type ReportedRefund, sumSucceeded } from '../../core/payments/provider-payments.ts';
import type { AccountRefund } from '../account-payments.ts';
import type { RefundOutcome } from '../payment-provider.ts';
import { isRefused, ProviderError } from '../provider-error.ts';
import { fromSubunits, toSubunits } from './amounts.ts';
import { createKeyedRefund, type RazorpayClient, unwrapError } from './client.ts';
import { readNote, toNotes, toReference } from './texts.ts';

const PAGE = 100;

/** Refunds the payment, or returns the refund that an earlier request with this key has made. */
export async function refundOnce(
  razorpay: RazorpayClient,
  payment_id: string,
  refund: AccountRefund,
): Promise<RefundOutcome> {
  const receipt = toReference(refund.key);
  const earlier = (await listAll(razorpay, payment_id)).find((one) => one.receipt === receipt);
  if (earlier !== undefined) return toRefundOutcome(earlier);
  const body = {
    amount: toSubunits(refund.amount, refund.currency),
    receipt,
    notes: toNotes({ farthing_refund_id: refund.refund_id }),
  };
  try {
    return toRefundOutcome(await createKeyedRefund(razorpay, { payment_id, idempotency_key: receipt }, body));
  } catch (thrown) {
    const error = unwrapError(thrown);
    if (!isRefused(error)) throw error;
    return { outcome: 'failed', error: error.message };
  }
}

/**
 * Reads the refunds of a payment and the sum of those that were made. `amount_refunded` of the payment is not read, because it also contains
 * pending refunds, and its documentation does not say whether it contains failed ones.
 */
export async function readRefunds(
  razorpay: RazorpayClient,
  { id, currency }: { readonly id: string; readonly currency: string },
): Promise<{ refunds: ReportedRefund[]; refunded_amount: string }> {
  const refunds = (await listAll(razorpay, id)).map((refund) => toReportedRefund(refund, currency));
  return { refunds, refunded_amount: sumSucceeded(refunds) };
}

/**
 * Lists all refunds of a payment. Razorpay lists 10 refunds unless `count` says otherwise
 * (razorpay.com/docs/api/refunds/fetch-multiple-refund-payment).
 */
async function listAll(razorpay: RazorpayClient, payment_id: string): Promise<Refunds.RazorpayRefund[]> {
  const refunds: Refunds.RazorpayRefund[] = [];
  for (let skip = 0; ; skip += PAGE) {
    const { items } = await razorpay.payments.fetchMultipleRefund(payment_id, { count: PAGE, skip });
    refunds.push(...items);
    if (items.length < PAGE) return refunds;
  }
}

function toReportedRefund(refund: Refunds.RazorpayRefund, currency: string): ReportedRefund {
  const outcome = toRefundOutcome(refund);
  return {
    provider_refund_id: refund.id,
    amount: fromSubunits(Number(refund.amount), currency),
    refund_status: outcome.outcome,
    error: outcome.outcome === 'failed' ? outcome.error : null,
    refund_id: readNote(refund, 'farthing_refund_id'),
  };
}

/** Refuses an unknown status, because it may mean that money moved; a person has to decide. */
function toRefundOutcome({ id, status }: { readonly id: string; readonly status: string }): RefundOutcome {
  switch (status) {
    case 'processed':
      return { outcome: 'succeeded', gateway_refund_id: id };
    case 'created':
    case 'pending':
      return { outcome: 'pending', gateway_refund_id: id };
    case 'failed':
      return { outcome: 'failed', error: `refund_failed: Razorpay could not send ${id}` };
    default:
      throw new ProviderError('person', `the refund ${id} has the status ${status} at Razorpay`, {
        is_of_record: true,
      });
  }
}
