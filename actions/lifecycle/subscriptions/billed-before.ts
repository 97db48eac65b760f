/** Amounts billed and credited for a line in one of its periods, by invoices that are not drafts. */

import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { PreviouslyBilled } from '../../../core/rating/change.ts';
import { toComputedCharge } from '../../../core/rating/computed-from.ts';
import { sumBilledLines } from '../../../core/rating/credit-adjustments.ts';
import { type InvoicedLine, isCredit } from '../../invoicing/billing/gather-closed-charges.ts';
import type { BillableItem } from '../../rating/billable-items.ts';

export function computeBilledBefore(
  period: Period,
  { id }: BillableItem,
  invoiced: readonly InvoicedLine[],
): PreviouslyBilled {
  const lines = invoiced.filter(
    ({ line, service, invoice_status }) =>
      line.subscription_line_item_id === id &&
      invoice_status !== 'DRAFT' &&
      service.start >= period.start &&
      service.end <= period.end,
  );
  const amounts = (some: readonly InvoicedLine[]) => sumDecimals(some.map(({ line }) => new Decimal(line.amount)));
  const charges = lines.filter((one) => !isCredit(one));
  return {
    amount: amounts(charges),
    computed: sumDecimals(charges.map(({ line }) => new Decimal(toComputedCharge(line).amount))),
    credited: amounts(lines.filter(isCredit)).negated(),
    until_ms: charges.length === 0 ? null : Math.max(...charges.map(({ service }) => service.end)),
    invoice_line_item_id: charges[0]?.line.id ?? null,
    billed: sumBilledLines(lines.map(({ line }) => line)),
  };
}
