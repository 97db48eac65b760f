/** Takes the next numbers of invoices or credit notes in the format of the environment's setting (docs/rules/invoices.md, "Numbers"). */

import type { Scope } from '../../../core/foundation/scope.ts';
import { formatDocumentNumber, type NumberConfig, toNumberToken } from '../../../core/invoicing/document/number.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import {
  findTakenNumbers,
  type NumberSeries,
  takeDocumentNumbers,
} from '../../../storage/models/invoicing/document-number.ts';

/** Number of following numbers that one query checks, after a number turned out to be taken. */
const AHEAD = 1_000n;

type NextNumbers = {
  readonly series: NumberSeries;
  readonly config: NumberConfig;
  readonly count: number;
  readonly now: Date;
};

/**
 * Takes the next numbers in the finalizing transaction; the counter stays locked until the commit. Formats with different counters may
 * yield equal numbers, so a number that a document already has is skipped.
 */
export async function takeNextNumbers(
  transaction: Transaction,
  scope: Scope,
  { series, config, count, now }: NextNumbers,
): Promise<string[]> {
  const token = toNumberToken(config, now.getTime());
  const start = BigInt(config.start_sequence);
  const formatNumber = (number: bigint) => formatDocumentNumber(config, token, number - start + 1n);
  const take = (many: number) => takeDocumentNumbers(scope, { series, token, count: many, start }, transaction);
  const findTaken = (numbers: readonly bigint[]) =>
    findTakenNumbers(scope, { series, numbers: numbers.map(formatNumber) }, transaction);
  const free: string[] = [];
  while (free.length < count) {
    const numbers = await take(count - free.length);
    const given = await findTaken(numbers);
    free.push(...numbers.map(formatNumber).filter((number) => !given.has(number)));
    const last = numbers.at(-1)!;
    if (given.has(formatNumber(last))) await passOver(last);
  }
  return free;

  /** Advances the counter past the consecutive taken numbers. */
  async function passOver(last: bigint): Promise<void> {
    const next = Array.from({ length: Number(AHEAD) }, (_, index) => last + BigInt(index) + 1n);
    const given = await findTaken(next);
    const until = next.findIndex((number) => !given.has(formatNumber(number)));
    if (until !== 0) await take(until < 0 ? next.length : until);
    if (until < 0) await passOver(last + AHEAD);
  }
}
