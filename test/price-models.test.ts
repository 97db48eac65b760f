// The registry of price models: what it lists is what may be said, a new model is one file and one line, and a field that a
// price charges by is one line, beside its column and its model.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { PRICE_MODELS } from '../core/catalog/pricing/index.ts';

const ROOT = join(import.meta.dirname, '..');

const PER_SEAT = `/** PER_SEAT: some units are free, every further one costs the amount. */
import { Decimal, ZERO } from '../../foundation/decimal.ts';
import { requireAmount, amountText, checkAmount } from './amount.ts';
import { chargePart, type PricingModel } from './terms.ts';

export const perSeat = {
  billing_model: 'PER_SEAT',
  tier_mode: null,
  takes: ['amount', 'free_seats'],
  check: checkAmount,
  parts(price, quantity) {
    const further = Decimal.max(ZERO, quantity.minus(price.free_seats ?? 0));
    return [chargePart(null, further, { unit_amount: requireAmount(price, 'PER_SEAT') })];
  },
  text: ({ amount }) => \`\${amountText(amount)} a seat\`,
} as const satisfies PricingModel;
`;

/** What the compiler must allow once the model is listed. */
const USE = `import { priceUsageCharge } from './rating/line-amount.ts';
import { definePrice } from './catalog/price/define.ts';
import { createPriceShape, CRITICAL_FIELDS, replaceCharge } from './catalog/price/record.ts';
import { Decimal } from './foundation/decimal.ts';
import { chargeParts, type PriceTerms, priceText } from './catalog/pricing/charge.ts';
import { planSuccessor } from './catalog/price/successor.ts';
import type { PriceOverride } from './subscriptions/lines.ts';
import { overrideLineItemShape } from './subscriptions/line-shapes.ts';

export const terms: PriceTerms = {
  billing_model: 'PER_SEAT',
  currency: 'usd',
  amount: '3',
  free_seats: '2',
};
export const override: PriceOverride = { price_id: 'price_1', free_seats: '3' };
export { CRITICAL_FIELDS, Decimal, chargeParts, createPriceShape, definePrice, overrideLineItemShape, priceText, planSuccessor, priceUsageCharge, replaceCharge };
`;

describe('the registry of price models', () => {
  it('has no two models for the same prices', () => {
    const named = PRICE_MODELS.map(({ billing_model, tier_mode }) => `${billing_model} ${tier_mode ?? ''}`);
    expect(new Set(named).size).to.equal(named.length);
    for (const { billing_model } of PRICE_MODELS) {
      const ways = PRICE_MODELS.filter((model) => model.billing_model === billing_model);
      if (ways.length > 1) expect(ways.map((way) => way.tier_mode)).to.not.include(null);
    }
  });

  describe('with one more file, its line, and the line of a field', function () {
    this.timeout(60_000);
    let copy: string;
    const write = (file: string, text: string) => writeFileSync(join(copy, file), text);
    before(() => {
      copy = mkdtempSync(join(tmpdir(), 'farthing-models-'));
      cpSync(join(ROOT, 'core'), join(copy, 'core'), { recursive: true });
      for (const file of ['package.json', 'tsconfig.json']) cpSync(join(ROOT, file), join(copy, file));
      symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
      const list = readFileSync(join(copy, 'core/catalog/pricing/index.ts'), 'utf8');
      write('core/catalog/pricing/per-seat.ts', PER_SEAT);
      write(
        'core/catalog/pricing/index.ts',
        `import { perSeat } from './per-seat.ts';\n${list.replace('  flatFee,', '  perSeat,\n  flatFee,')}`,
      );
      const terms = readFileSync(join(copy, 'core/catalog/pricing/terms.ts'), 'utf8');
      write(
        'core/catalog/pricing/terms.ts',
        terms.replace('modelFields = {', 'modelFields = {\n  free_seats: decimalText,'),
      );
      write('core/use.ts', USE);
    });
    after(() => rmSync(copy, { recursive: true, force: true }));

    it('is a word of the types', () => {
      const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
      const { stdout, status } = spawnSync(process.execPath, [tsc, '--noEmit', '-p', copy], { encoding: 'utf8' });
      expect(stdout).to.equal('');
      expect(status).to.equal(0);
    });

    it('has its field wherever prices are handled', async () => {
      const { override, terms, ...core } = await import(pathToFileURL(join(copy, 'core/use.ts')).href);
      expect(core.CRITICAL_FIELDS).to.include('free_seats');
      expect(core.overrideLineItemShape.parse(override)).to.include({ free_seats: '3' });
      const root = { ...terms, tiers: null };
      expect(core.replaceCharge(root, override)).to.include({ free_seats: '3', amount: '3', display_amount: '$3.00' });
      const measured = {
        quantity: new core.Decimal(5),
        event_count: 5,
        buckets: null,
        as_of: '',
        high_water: {},
        meter_version: 1,
      };
      const line = core.priceUsageCharge(
        { price: terms, meter_id: null },
        { start: 0, end: 1 },
        { measured, currency: 'usd' },
      );
      expect(line.computed_from.price).to.include({ free_seats: '2', billing_model: 'PER_SEAT', amount: '3' });
    });

    it('is understood in requests, checked, priced, changed and told', async () => {
      const { terms, ...core } = await import(pathToFileURL(join(copy, 'core/use.ts')).href);
      const request = {
        ...terms,
        billing_model: 'per_seat',
        entity_type: 'PLAN',
        entity_id: 'plan_1',
        type: 'FIXED',
        billing_period: 'MONTHLY',
        invoice_cadence: 'ADVANCE',
      };
      const price = core.definePrice(core.createPriceShape.parse(request));
      expect(price).to.include({ billing_model: 'PER_SEAT', amount: '3' });
      expect(core.chargeParts(price, '5')[0].amount.toFixed()).to.equal('9');
      expect(core.priceText(price)).to.equal('3 a seat');
      const without = core.createPriceShape.parse({ ...request, amount: null });
      expect(() => core.definePrice(without)).to.throw('amount: is required for PER_SEAT');
      const changed = { ...price, id: 'price_1', billing_model: 'FLAT_FEE', free_seats: null };
      const toSeats = { billing_model: 'PER_SEAT', free_seats: '4' };
      expect(core.planSuccessor(changed, toSeats, { start_date: '2026-05-01T00:00:00Z' })).to.deep.include({
        amount: '3',
        ...toSeats,
      });
      expect(() => core.planSuccessor(price, { tier_mode: 'SLAB' }, { start_date: '2026-05-01T00:00:00Z' })).to.throw(
        'tier_mode: is used by TIERED only, not by PER_SEAT',
      );
    });
  });
});
