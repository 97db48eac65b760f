/**
 * The charge of a running period, made again of what its lines count by now (storage/kept): by the functions that plan the invoice, and
 * from what the preview gathered. It is kept for many subscriptions at once, so of their records only what core goes by is.
 */
import { planFollowing } from '../../core/billing/invoices-to-come.ts';
import type { MeasuredUsage, PricedItem } from '../../core/billing/line-amount.ts';
import { chargeKey, type InvoiceQuestion, openCharges, planDiscounted } from '../../core/billing/plan-invoice.ts';
import { usageNet, usageNetOfAll } from '../../core/billing/usage-net.ts';
import type { Decimal } from '../../core/decimal.ts';
import type { Made, ReadKept } from '../../storage/kept/kept-answer.ts';
import { sharedValue } from '../../storage/kept/shared-value.ts';
import { type BillableItem, measuredAtHand } from './billable-items.ts';

/** Of several they follow each other: invoices that wait to be made. */
export function chargeAgain(gathered: readonly InvoiceQuestion<BillableItem>[]): Made<Decimal> {
  const closing = gathered.find(({ reference }) => reference !== 'period_start');
  const invoices = gathered.map(questionAgain);
  return {
    answer: usageOfAll(gathered),
    again: (read) => usageOfAll(invoices.map((questionOf) => questionOf(read))),
    // What comes late for what is invoiced already is a correction, which is gathered anew.
    ...(closing ? { late_before_ms: closing.period.start } : {}),
  };
}

function questionAgain(gathered: InvoiceQuestion<BillableItem>): (read: ReadKept) => InvoiceQuestion<PricedItem> {
  const question = slim(gathered);
  // Which charges there are, and what is free of them, is the same whatever arrives, and takes longer to find than what they come to.
  const open = openCharges(question);
  const measures = open.map(({ item, usage_window }) =>
    usage_window === null ? null : measuredAtHand(question.subscription, item, usage_window),
  );
  return (read) => {
    const usage = new Map<string, MeasuredUsage>();
    for (const [index, { item, service }] of open.entries()) {
      const measured = measures[index]?.((window) => read(item.meter_id!, window));
      if (measured) usage.set(chargeKey(item.id, service), measured);
    }
    return { ...question, open, usage };
  };
}

function usageOfAll(questions: readonly InvoiceQuestion<PricedItem>[]): Decimal {
  const [only, ...others] = questions;
  return others.length === 0 ? usageNet(planDiscounted(only!)) : usageNetOfAll(planFollowing(questions));
}

function slim(gathered: InvoiceQuestion<BillableItem>): InvoiceQuestion<PricedItem> {
  const items = new Map<BillableItem, PricedItem>();
  const slimItem = (item: BillableItem): PricedItem => {
    const known = items.get(item);
    if (known) return known;
    const { record: _record, price_record: _price, meter: _meter, ...priced } = item;
    const made = { ...priced, price: sharedValue(priced.price) };
    items.set(item, made);
    return made;
  };
  return {
    ...gathered,
    items: gathered.items.map(slimItem),
    closed: gathered.closed.map((charge) => ({ ...charge, item: slimItem(charge.item) })),
    usage: new Map(),
  };
}
