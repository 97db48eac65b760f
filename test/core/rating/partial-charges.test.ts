/** What is invoiced before a period is over, and at its end, is what the period costs (core/rating/partial-charges.ts). */
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import type { PlannedLine, PricedItem } from '../../../core/rating/line-amount.ts';
import {
  offsetPartialCharges,
  type PartialCharge,
  planOverbilledCredits,
} from '../../../core/rating/partial-charges.ts';

const service = { start: 0, end: 31 };
type Cost = { readonly id: string; readonly amount: number; readonly quantity: number };

function line({ id, amount, quantity }: Cost): PlannedLine {
  const item = { id, price_type: 'USAGE', display_name: id } as PricedItem;
  const amounts = { amount: new Decimal(amount), quantity: new Decimal(quantity) };
  return { item, service, display_name: id, parent_line_item_id: null, computed_from: {}, ...amounts };
}

function plan(costs: readonly Cost[], invoiced: readonly PartialCharge[], how: { is_last: boolean; carries: boolean }) {
  const less = offsetPartialCharges(costs.map(line), invoiced);
  return [...less, ...planOverbilledCredits(less, { ...how, currency: 'usd' })];
}

const partOf = ({ item, amount, quantity }: PlannedLine): PartialCharge => ({
  item_id: item.id,
  service: { start: 0, end: 1 },
  amount,
  quantity,
});

const amountOf = (lines: readonly { amount: Decimal }[]) => sumDecimals(lines.map(({ amount }) => amount));

/** What two charges cost at each look; nothing says that it only grows. */
const cost = fc.record({ amount: fc.integer({ min: 0, max: 50 }), quantity: fc.integer({ min: 0, max: 9 }) });
const look = fc.tuple(cost, cost).map(([a, b]): Cost[] => [
  { id: 'a', ...a },
  { id: 'b', ...b },
]);

describe('usage that is invoiced before its period is over', () => {
  it('adds up to what the period costs, with what the invoice of the period carries on', () => {
    fc.assert(
      fc.property(fc.array(look, { minLength: 1, maxLength: 6 }), fc.boolean(), (looks, is_last) => {
        const invoiced: PartialCharge[] = [];
        for (const costs of looks.slice(0, -1)) {
          const lines = plan(costs, invoiced, { is_last: false, carries: false });
          expect(amountOf(lines).gte(0), 'no invoice is below 0').to.equal(true);
          invoiced.push(...lines.map(partOf));
        }
        const last = looks.at(-1)!;
        const lines = plan(last, invoiced, { is_last, carries: true });
        const carried = sumDecimals(lines.map(({ computed_from }) => new Decimal(computed_from.carried_amount ?? 0)));
        const costs = last.reduce((sum, { amount }) => sum + amount, 0);
        expect(amountOf(invoiced).plus(amountOf(lines)).minus(carried).toNumber()).to.equal(costs);
        if (is_last) expect(carried.toNumber(), 'nothing comes behind the last').to.equal(0);
        else expect(amountOf(lines).gte(0)).to.equal(true);
        // What is carried did not fit.
        if (carried.gt(0)) expect(amountOf(lines).toNumber()).to.equal(0);
      }),
    );
  });
});
