/** Takes the next invoice numbers in the format of the environment's setting (docs/rules/invoices.md, "Numbers"). */

import type { Scope } from '../../../core/foundation/scope.ts';
import { formatInvoiceNumber, toNumberToken } from '../../../core/invoicing/invoice/number.ts';
import type { SettingValue } from '../../../core/platform/setting/record.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { takeInvoiceNumbers } from '../../../storage/models/invoicing/invoice-number.ts';

/** Number of following invoice numbers that one query checks, after a number turned out to be taken. */
const AHEAD = 1_000n;

/**
 * Takes the next numbers in the finalizing transaction; the counter stays locked until the commit. Formats with different counters may
 * yield equal numbers, so a number that an invoice already has is skipped.
 */
export async function takeNextNumbers(
  transaction: Transaction,
  scope: Scope,
  { config, count, now }: { config: SettingValue<'invoice_config'>; count: number; now: Date },
): Promise<string[]> {
  const token = toNumberToken(config, now.getTime());
  const start = BigInt(config.start_sequence);
  const formatNumber = (number: bigint) => formatInvoiceNumber(config, token, number - start + 1n);
  const take = (many: number) => takeInvoiceNumbers(scope, { token, count: many, start }, transaction);
  const free: string[] = [];
  while (free.length < count) {
    const numbers = await take(count - free.length);
    const given = await findTakenNumbers(transaction, scope, numbers.map(formatNumber));
    free.push(...numbers.map(formatNumber).filter((number) => !given.has(number)));
    const last = numbers.at(-1)!;
    if (given.has(formatNumber(last))) await passOver(last);
  }
  return free;

  /** Advances the counter past the consecutive taken numbers. */
  async function passOver(last: bigint): Promise<void> {
    const next = Array.from({ length: Number(AHEAD) }, (_, index) => last + BigInt(index) + 1n);
    const given = await findTakenNumbers(transaction, scope, next.map(formatNumber));
    const until = next.findIndex((number) => !given.has(formatNumber(number)));
    if (until !== 0) await take(until < 0 ? next.length : until);
    if (until < 0) await passOver(last + AHEAD);
  }
}

async function findTakenNumbers(
  transaction: Transaction,
  scope: Scope,
  numbers: readonly string[],
): Promise<Set<string>> {
  const found = await InvoiceModel.in(scope, transaction)
    .whereIn('invoice_number', [...numbers])
    .select('invoice_number');
  return new Set(found.flatMap(({ invoice_number }) => invoice_number ?? []));
}
