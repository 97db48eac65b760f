/**
 * Refunds of a payment at Moyasar, each made once. Moyasar has neither keys nor records of refunds, only their sum (docs.moyasar.com,
 * "Refund Payment"). Before a refund the sum is therefore written into the metadata of the payment, with the sum of the refunds that are
 * recorded here: after a lost answer the differences show whether the refund was made.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { AccountRefund } from '../account-payments.ts';
import { JsonNumber } from '../exact-json.ts';
import type { RefundOutcome } from '../payment-provider.ts';
import { isRefused, ProviderError } from '../provider-error.ts';
import { fromSmallestUnits, toSmallestUnits } from './amounts.ts';
import type { MoyasarClient } from './client.ts';
import { type MoyasarPayment, readMetadata } from './records.ts';

/** Sums in the smallest unit of the currency. */
type RefundSums = {
  /** All refunds at Moyasar. */
  readonly refunded: number;
  /** Refunds of this payment that are recorded as made. */
  readonly recorded: number;
};

export async function refundOnce(
  client: MoyasarClient,
  payment: MoyasarPayment,
  refund: AccountRefund,
): Promise<RefundOutcome> {
  const amount = toSmallestUnits(refund.amount, refund.currency);
  const name = toEntryName(refund.key);
  const made = { outcome: 'succeeded', gateway_refund_id: `${payment.id}:${name}` } as const;
  const recorded = toSmallestUnits(refund.refunded_before ?? '0', refund.currency);
  const before = readSumsBefore(payment, name);
  const now = { refunded: Number(payment.refunded), recorded };
  if (before !== null && hasRefunded(refund, { id: payment.id, before, now, amount })) return made;
  await announceRefund(client, payment, { name, recorded });
  try {
    await client.refundPayment(payment.id, { amount: new JsonNumber(String(amount)) });
    return made;
  } catch (error) {
    if (!isRefused(error)) throw error;
    return { outcome: 'failed', error: error.message };
  }
}

/** Name of the entry in the metadata, which has at most 40 characters. */
function toEntryName(key: string): string {
  return `farthing_refund_${createHash('sha256').update(key).digest('hex').slice(0, 24)}`;
}

/** Reads the sums before the last attempt; null if there was none. */
function readSumsBefore(payment: MoyasarPayment, name: string): RefundSums | null {
  const [, refunded, recorded] = /^(\d+) (\d+) /.exec(readMetadata(payment, name) ?? '') ?? [];
  return refunded === undefined ? null : { refunded: Number(refunded), recorded: Number(recorded) };
}

type EarlierRefund = {
  /** Id of the payment. */
  readonly id: string;
  readonly before: RefundSums;
  readonly now: RefundSums;
  readonly amount: number;
};

/**
 * Whether an earlier attempt made the refund. Other refunds of the payment may have been made or recorded since. Throws if the sums show
 * neither: a person has to decide.
 */
function hasRefunded({ amount: wanted, currency }: AccountRefund, { id, before, now, amount }: EarlierRefund): boolean {
  const since = now.refunded - before.refunded;
  const recorded = now.recorded - before.recorded;
  if (since - recorded === amount) return true;
  // A refund that was recorded since may have been made before the attempt, if as much was unrecorded then.
  const unrecorded = before.refunded - before.recorded;
  if (since === 0 || (since === recorded && unrecorded < amount)) return false;
  const changed = fromSmallestUnits(since, currency);
  throw new ProviderError(
    'wait',
    `it is unknown whether the refund of ${wanted} ${currency} of ${id} was made: ${changed} was refunded at Moyasar since it was requested`,
    { is_of_record: true },
  );
}

type AnnouncedRefund = { readonly name: string; readonly recorded: number };

/** Writes the sums of refunds. If a concurrent attempt writes them too, or refunds already, this attempt is repeated. */
async function announceRefund(
  client: MoyasarClient,
  payment: MoyasarPayment,
  { name, recorded }: AnnouncedRefund,
): Promise<void> {
  const entry = `${payment.refunded} ${recorded} ${randomBytes(8).toString('hex')}`;
  await client.updatePayment(payment.id, { metadata: { ...readTexts(payment), [name]: entry } });
  const current = await client.findPayment(payment.id);
  if (current !== null && readMetadata(current, name) === entry && current.refunded === payment.refunded) return;
  throw new ProviderError('wait', `${payment.id} is being refunded twice at once: one attempt is repeated`, {
    is_of_record: true,
  });
}

function readTexts({ metadata }: MoyasarPayment): Record<string, string> {
  const entries = Object.entries(metadata ?? {});
  return Object.fromEntries(entries.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])));
}
