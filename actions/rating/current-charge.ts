/**
 * Computes the charge of a running period, and recomputes it from cached usage when events arrive (storage/cache). It uses the functions
 * that plan the invoice and the inputs that the preview gathered. Many subscriptions are cached at once, so only the fields that core reads
 * are cached.
 */

import type { Decimal } from '../../core/foundation/decimal.ts';
import type { Chain } from '../../core/rating/chains/chain.ts';
import { usageToRead } from '../../core/rating/chains/charge-chains.ts';
import { type ComingInvoiceInput, planFollowing } from '../../core/rating/invoices-to-come.ts';
import type { MeasuredUsage, PricedItem } from '../../core/rating/line-amount.ts';
import { type InvoicePlanInput, listOpenCharges, planDiscounted } from '../../core/rating/plan-invoice.ts';
import { totalUsageNet, usageNet } from '../../core/rating/usage-net.ts';
import type { ComputedAnswer, ReadCached } from '../../storage/cache/cache-entry.ts';
import { internValue } from '../../storage/cache/shared-value.ts';
import type { BillableItem } from './billable-items.ts';
import { buildLocalMeasure } from './measure-usage.ts';

/** Builds the current charge. Each input plans one invoice that does not exist yet. Several inputs are for consecutive periods. */
export function buildCurrentCharge(gathered: readonly InvoicePlanInput<BillableItem>[]): ComputedAnswer<Decimal> {
  const closing = gathered.find(({ reference }) => reference !== 'period_start');
  const invoices = gathered.map(buildReplayedInput);
  return {
    answer: sumUsage(gathered.map((input) => ({ ...input, open_charges: listOpenCharges(input) }))),
    again: (read) => sumUsage(invoices.map((replay) => replay(read))),
    // Late usage of an invoiced period is a correction; its inputs are gathered again.
    ...(closing ? { late_before_ms: closing.period.start } : {}),
  };
}

function buildReplayedInput(
  gathered: InvoicePlanInput<BillableItem>,
): (read: ReadCached) => ComingInvoiceInput<PricedItem> {
  const input = slim(gathered);
  // New events change neither the list of charges nor their allowances. Both are computed once here, because that takes longer than
  // pricing.
  const open_charges = listOpenCharges(input);
  const measures = usageToRead(open_charges).map(({ item, keys, ...options }) => {
    const measure = buildLocalMeasure(input.subscription, item, options);
    return { keys, measured: (read: ReadCached) => measure((window) => read(item.meter_id!, window)) };
  });
  return (read) => {
    const usage = new Map<string, MeasuredUsage>();
    for (const { keys, measured } of measures) {
      const one = measured(read);
      for (const key of keys) usage.set(key, one);
    }
    return { ...input, open_charges, usage };
  };
}

function sumUsage(inputs: readonly ComingInvoiceInput<PricedItem>[]): Decimal {
  const [only, ...others] = inputs;
  return others.length === 0
    ? usageNet(planDiscounted(only!, only!.open_charges))
    : totalUsageNet(planFollowing(inputs));
}

function slim(gathered: InvoicePlanInput<BillableItem>): InvoicePlanInput<PricedItem> {
  const items = new Map<BillableItem, PricedItem>();
  const slimItem = (item: BillableItem): PricedItem => {
    const known = items.get(item);
    if (known) return known;
    const { line_item: _record, meter: _meter, ...priced } = item;
    const made = { ...priced, price: internValue(priced.price) };
    items.set(item, made);
    return made;
  };
  const chains = new Map<Chain<BillableItem>, Chain<PricedItem>>();
  const slimChain = (chain: Chain<BillableItem>): Chain<PricedItem> => {
    const lines = chain.lines.map(({ item, service }) => ({ item: slimItem(item), service }));
    const made = chains.get(chain) ?? { ...chain, lines };
    chains.set(chain, made);
    return made;
  };
  return {
    ...gathered,
    items: gathered.items.map(slimItem),
    closed: gathered.closed.map(({ chained, ...charge }) => ({
      ...charge,
      item: slimItem(charge.item),
      ...(chained ? { chained: { ...chained, chain: slimChain(chained.chain) } } : {}),
    })),
    usage: new Map(),
  };
}
