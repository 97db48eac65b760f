/**
 * Lists, as text, the parts of a line that a verifier cannot recompute from the proof of its invoice and has to accept as given
 * (docs/proof.md, "What it says").
 */

import { Decimal } from '../../foundation/decimal.ts';
import { toInstant } from '../../foundation/time/instant.ts';
import { isDiscountedOrTaxed } from '../../rating/adjustment-fields.ts';
import type { ComputedFrom } from '../../rating/computed-from.ts';
import type { InvoiceLineItem } from '../invoice/record.ts';
import type { CountedLine } from './record.ts';

type UnprovenInput = { readonly line: InvoiceLineItem; readonly counted: CountedLine | null };

export function listUnproven({ line, counted }: UnprovenInput): string[] {
  const from = line.computed_from;
  if (!from) return ['all of it: it was written by hand'];
  const reason = from.reason ?? '';
  const listIf = (condition: unknown, what: string) => (condition ? [what] : []);
  return [
    ...listIf(from.edited, 'its amount and its quantity, which were edited by hand'),
    ...listIf(reason.startsWith('true_up: '), 'what was used of the commitment of the subscription in its term'),
    ...listIf(from.share ?? from.proration, 'the length of its whole period'),
    ...listIf(/^(unused_time|resumed): /.test(reason), 'what other invoices have billed of its time'),
    ...listIf(from.billed_before, 'what other invoices have billed of its charge'),
    ...listIf(reason.startsWith('threshold_surplus: '), 'what was invoiced too much before the period was over'),
    ...listIf(reason.includes('less '), 'what other invoices have billed of its charge so far'),
    ...listIf(from.meter_id && counted === null, 'its quantity: the definition of its meter is not kept'),
    ...listIf(
      hasUnsupportedFunction(counted?.meter.aggregation.expression),
      'what the expression of the meter makes of each event',
    ),
    ...listIf(hasEarlierUse(from), 'what was used of a limit of free units before it began'),
    ...listIf(hasGrants(from), 'in which stretches of time its grants make usage free, and up to what'),
    ...listUnprovenCommitment(line, from),
    ...listIf(hasCompanions(line), 'the discounts and the tax that go with what it gives back'),
  ];
}

/** Whether the expression has a function that the verifier cannot compute exactly, because it computes with fractions. */
function hasUnsupportedFunction(expression: string | null | undefined): boolean {
  const called = (expression ?? '').matchAll(/([a-z_]\w*)\s*\(/gi);
  return [...called].some(([, name]) => !COMPUTED.has(name!));
}

const COMPUTED: ReadonlySet<string> = new Set(['min', 'max', 'pow', 'abs', 'floor', 'ceil', 'round', 'double']);

function listUnprovenCommitment(
  { commitment_info: info }: InvoiceLineItem,
  { drawn_from, of_term, kind }: ComputedFrom,
): string[] {
  if (of_term?.since && kind !== 'true_up')
    return [`that ${of_term.used} of ${of_term.committed} were used in the term before`];
  if (drawn_from === 'subscription') return ['how much of the commitment of the subscription was left for it'];
  if (!info) return [];
  if (info.is_windowed) return ['the commitment of each window, with its times of day'];
  if (info.duration) return [`what was drawn of its commitment of ${info.amount} in earlier periods of the term`];
  return [`the commitment of its period, ${info.amount}`];
}

function hasEarlierUse({ allowances, window_start }: ComputedFrom): boolean {
  const windows = (allowances ?? []).flatMap((allowance) => allowance['windows'] as { start: string }[]);
  return windows.some(({ start }) => Boolean(window_start) && toInstant(start) < toInstant(window_start!));
}

function hasGrants({ allowances }: ComputedFrom): boolean {
  return (allowances ?? []).some((allowance) => allowance['grants']);
}

function hasCompanions(line: InvoiceLineItem): boolean {
  return new Decimal(line.amount).isNegative() && isDiscountedOrTaxed(line);
}
