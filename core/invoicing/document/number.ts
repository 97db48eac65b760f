/**
 * Numbers of invoices and credit notes consist of prefix, date token and sequence. Each tenant, environment and token has its own counter,
 * so the sequence restarts with a new token. A document gets its number at finalization (docs/rules/invoices.md, "Numbers").
 */
import { Temporal } from 'temporal-polyfill';
import { invalid } from '../../foundation/error.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';

export const NUMBER_FORMATS = ['YYYYMM', 'YYYYMMDD', 'YYMMDD', 'YY', 'YYYY'] as const;
export type NumberFormat = (typeof NUMBER_FORMATS)[number];

export type NumberConfig = {
  readonly prefix: string;
  readonly separator: string;
  readonly format: NumberFormat;
  readonly suffix_length: number;
  readonly start_sequence: number;
  readonly timezone: string;
};

export const DEFAULT_INVOICE_NUMBERS: NumberConfig = {
  prefix: 'INV',
  separator: '-',
  format: 'YYYYMM',
  suffix_length: 5,
  start_sequence: 1,
  timezone: 'UTC',
};

export const DEFAULT_CREDIT_NOTE_NUMBERS: NumberConfig = { ...DEFAULT_INVOICE_NUMBERS, prefix: 'CN' };

/** Date token of the number, which also identifies the counter. */
export function toNumberToken(config: NumberConfig, finalizedAtMs: Milliseconds): string {
  const date = Temporal.Instant.fromEpochMilliseconds(finalizedAtMs).toZonedDateTimeISO(config.timezone).toPlainDate();
  const year = String(date.year).padStart(4, '0');
  const month = String(date.month).padStart(2, '0');
  const day = String(date.day).padStart(2, '0');
  switch (config.format) {
    case 'YYYYMM':
      return year + month;
    case 'YYYYMMDD':
      return year + month + day;
    case 'YYMMDD':
      return year.slice(2) + month + day;
    case 'YY':
      return year.slice(2);
    case 'YYYY':
      return year;
    default:
      throw invalid('format', `${JSON.stringify(config.format)} is not one of ${NUMBER_FORMATS.join(', ')}`);
  }
}

/**
 * Formats a number. `nth` is 1 for the first document of the token. A number longer than `suffix_length` is
 * printed in full.
 */
export function formatDocumentNumber(config: NumberConfig, token: string, nth: bigint): string {
  const sequence = (BigInt(config.start_sequence) - 1n + nth).toString().padStart(config.suffix_length, '0');
  return [config.prefix, token, sequence].join(config.separator);
}
