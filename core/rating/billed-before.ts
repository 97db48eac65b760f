/** Amounts that final invoices billed and credited for an item in one of its periods. */
import { Decimal, sumDecimals } from '../foundation/decimal.ts';
import type { Milliseconds } from '../foundation/time/instant.ts';
import type { Period } from '../foundation/time/period.ts';
import { type ComputedCharge, toComputedCharge } from './computed-from.ts';
import { type BilledLine, type BilledTotal, sumBilledLines } from './credit-adjustments.ts';

/** A line of a final invoice that charges an item, or credits a charge of it. */
export type BilledItemLine = {
  readonly service: Period;
  readonly line: BilledLine & ComputedCharge & { readonly id: string; readonly price_type?: string | null | undefined };
};

export type PreviouslyBilled = {
  readonly amount: Decimal;
  /** Part of the amount that earlier changes credited. */
  readonly credited: Decimal;
  /** Computed amount before manual edits. */
  readonly computed: Decimal;
  /** End of the billed time, which may be the instant of a cancellation; null if the item was not billed. */
  readonly until_ms: Milliseconds | null;
  /** Invoice line that charged the item; null if none did. */
  readonly invoice_line_item_id: string | null;
  /** Billed amounts that were not credited yet, with their discounts and tax. */
  readonly billed: BilledTotal;
};

/** Sums the billed amounts of one item in `period`; lines outside it are ignored. */
export function computeBilledBefore(period: Period, item_lines: readonly BilledItemLine[]): PreviouslyBilled {
  const lines = item_lines.filter(({ service }) => service.start >= period.start && service.end <= period.end);
  const charges = lines.filter((one) => !isCredit(one));
  return {
    amount: sumAmounts(charges),
    computed: sumDecimals(charges.map(({ line }) => new Decimal(toComputedCharge(line).amount))),
    credited: sumAmounts(lines.filter(isCredit)).negated(),
    until_ms: charges.length === 0 ? null : Math.max(...charges.map(({ service }) => service.end)),
    invoice_line_item_id: charges[0]?.line.id ?? null,
    billed: sumBilledLines(lines.map(({ line }) => line)),
  };
}

/** Whether the line credits an advance charge of another line (docs/rules/proration.md, "Changes inside a period"). */
export function isCredit({ line }: Pick<BilledItemLine, 'line'>): boolean {
  return line.price_type === 'FIXED' && new Decimal(line.amount).isNegative();
}

function sumAmounts(lines: readonly BilledItemLine[]): Decimal {
  return sumDecimals(lines.map(({ line }) => new Decimal(line.amount)));
}
