/**
 * The charge of a running period, made again of what its lines count by now (storage/kept): by the functions that plan the invoice, and
 * from what the preview gathered. It is kept for many subscriptions at once, so of their records only what core goes by is.
 */
import type { PricedItem } from '../../core/billing/line-amount.ts';
import { type InvoiceQuestion, openCharges, planInvoice } from '../../core/billing/plan-invoice.ts';
import { usageNet } from '../../core/billing/usage-net.ts';
import type { Decimal } from '../../core/decimal.ts';
import { type Made, NotKept, type ReadKept } from '../../storage/kept/kept-answer.ts';
import { sharedValue } from '../../storage/kept/shared-value.ts';
import { type BillableItem, measureBy } from './billable-items.ts';
import { usageOf } from './gather-billing.ts';

export function chargeAgain(gathered: InvoiceQuestion<BillableItem>): Made<Decimal> {
  const question = slim(gathered);
  const isClosing = gathered.reference !== 'period_start';
  const again = async (read: ReadKept): Promise<Decimal> => {
    const measure = measureBy<PricedItem>(question.subscription, {
      read: async (item, window) => read(item.meter_id!, window),
      // Of what is granted bit by bit the order counts, which no line keeps.
      readInOrder: () => Promise.reject(new NotKept()),
    });
    const usage = await usageOf(openCharges(question), measure);
    return usageNet(planInvoice({ ...question, usage }));
  };
  return {
    answer: usageNet(planInvoice(gathered)),
    again,
    // What comes late for what is invoiced already is a correction, which is gathered anew.
    ...(isClosing ? { late_before_ms: gathered.period.start } : {}),
  };
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
