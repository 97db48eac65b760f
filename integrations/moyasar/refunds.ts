/**
 * Refunds of a payment at Moyasar, each made once. Moyasar has neither keys nor records of refunds, only their sum (docs.moyasar.com,
 * "Refund Payment"). Before a refund the sum is therefore written into the metadata of the payment: after a lost answer the difference
 * shows whether the refund was made.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { AccountRefund } from '../account-payments.ts';
import { JsonNumber } from '../exact-json.ts';
import type { RefundOutcome } from '../payment-provider.ts';
import { isRefused, ProviderError } from '../provider-error.ts';
import { fromSmallestUnits, toSmallestUnits } from './amounts.ts';
import type { MoyasarClient } from './client.ts';
import { type MoyasarPayment, readMetadata } from './records.ts';

export async function refundOnce(
  client: MoyasarClient,
  payment: MoyasarPayment,
  refund: AccountRefund,
): Promise<RefundOutcome> {
  const amount = toSmallestUnits(refund.amount, refund.currency);
  const name = toEntryName(refund.key);
  const made = { outcome: 'succeeded', gateway_refund_id: `${payment.id}:${name}` } as const;
  const before = readSumBefore(payment, name);
  if (before !== null && hasRefunded(payment, { before, amount, refund })) return made;
  await announceRefund(client, payment, name);
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

/** Reads the sum of refunds before the first attempt; null if there was none. */
function readSumBefore(payment: MoyasarPayment, name: string): number | null {
  const sum = /^(\d+) /.exec(readMetadata(payment, name) ?? '')?.[1];
  return sum === undefined ? null : Number(sum);
}

type EarlierRefund = { readonly before: number; readonly amount: number; readonly refund: AccountRefund };

/** Whether an earlier attempt made the refund. Throws if the sum has changed by another amount: a person has to decide. */
function hasRefunded({ id, refunded }: MoyasarPayment, { before, amount, refund }: EarlierRefund): boolean {
  const since = Number(refunded) - before;
  if (since === 0 || since === amount) return since === amount;
  const { currency } = refund;
  const changed = fromSmallestUnits(since, currency);
  throw new ProviderError(
    'wait',
    `it is unknown whether the refund of ${refund.amount} ${currency} of ${id} was made: ${changed} was refunded at Moyasar since it was requested`,
    { is_of_record: true },
  );
}

/** Writes the sum of refunds. If a concurrent attempt writes it too, or refunds already, this attempt is repeated. */
async function announceRefund(client: MoyasarClient, payment: MoyasarPayment, name: string): Promise<void> {
  const entry = `${payment.refunded} ${randomBytes(8).toString('hex')}`;
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
