/**
 * What a preview says is what the draft says, and what the invoice says when it is final, whatever coupons and taxes there are: line by
 * line, coupon by coupon, rate by rate; in currencies of every number of decimals (docs/rules/invoices.md, "Preview and invoice agree").
 * And on each of them the parts add up (docs/rules/invoices.md, "Totals").
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import type { Invoice, InvoiceLine } from '../support/answers.ts';
import { samples } from '../support/samples.ts';
import { check, provenBy } from '../support/verifier.ts';
import { fixed, startWorld, tiers, usage, type World } from '../support/world.ts';

const CURRENCIES = { usd: 2, jpy: 0, kwd: 3 } as const;
type Currency = keyof typeof CURRENCIES;
const PERCENTAGES = ['0', '0.1', '3', '5', '7.7', '8.875', '19', '33.333', '100'];
const MONTHS = ['2026-02-01', '2026-03-01', '2026-04-01'];

const coupon = fc.record({
  off: fc.oneof(
    fc.record({ share: fc.constantFrom('0.5', '10', '12.5', '33.333333', '99.99', '100') }),
    // In minor units of the currency.
    fc.record({ minor: fc.integer({ min: 1, max: 20_000 }) }),
  ),
  lasts: fc.constantFrom({ cadence: 'once' }, { cadence: 'forever' }, { cadence: 'repeated', duration_in_periods: 2 }),
  /** Of the first or second price, or of the invoice. */
  of: fc.constantFrom(null, 0, 1),
});
const customer = fc.record({
  currency: fc.constantFrom<Currency>('usd', 'jpy', 'kwd'),
  used: fc.array(fc.integer({ min: 0, max: 2_000 }), { minLength: 3, maxLength: 3 }),
  coupons: fc.array(coupon, { maxLength: 3 }),
  rates: fc.uniqueArray(fc.nat(2 * PERCENTAGES.length), { maxLength: 3 }),
  exempt: fc.constantFrom('none', 'none', 'none', 'exempt', 'reverse'),
});
type Drawn = typeof customer extends fc.Arbitrary<infer One> ? One : never;

type Amount = 'amount' | 'line_item_discount' | 'invoice_level_discount' | 'tax_amount' | 'included_tax_amount';

describe('laws of invoices with coupons and taxes', function () {
  // Forty seconds on a quiet machine.
  this.timeout(300_000);
  let world: World;
  let codes: string[];
  const prices: Partial<Record<Currency, string[]>> = {};
  let names = 0;
  let year = 2025;
  const met = { discounted: 0, taxed: 0 };

  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    for (const [currency, places] of Object.entries(CURRENCIES)) {
      const unit = (minor: string) => new Decimal(minor).div(new Decimal(10).pow(places)).toFixed();
      const terms = { currency };
      const plan = await world.plan(currency, [
        tiers(
          'calls',
          [
            [100, unit('3.7')],
            [1000, unit('1.11'), unit('50')],
            [null, unit('0.9')],
          ],
          terms,
        ),
        fixed(unit('4999'), { ...terms, invoice_cadence: 'ADVANCE' }),
        usage('calls', unit('0.5'), { ...terms, billing_model: 'PACKAGE', transform_quantity: { divide_by: 7 } }),
      ]);
      const { items } = await world.get(`/prices?limit=1000&plan_ids=${plan.id}`);
      const own = items.filter(({ entity_id }) => entity_id === plan.id);
      own.sort((a, b) => (a.type === b.type ? 0 : a.type === 'USAGE' ? -1 : 1));
      prices[currency as Currency] = own.map(({ id }) => id);
    }
    codes = [];
    for (const tax_behavior of ['exclusive', 'inclusive'])
      for (const percentage_value of PERCENTAGES) {
        const code = `${tax_behavior} ${percentage_value}`;
        await world.post('/taxes/rates', { name: code, code, percentage_value, tax_behavior });
        codes.push(code);
      }
    await world.post('/taxes/rates', { name: 'fee', code: 'fee', tax_rate_type: 'fixed', fixed_value: '3' });
    codes.push('fee');
  });
  after(() => world.stop());

  async function subscribe({ currency, coupons, rates, exempt }: Drawn): Promise<string> {
    const name = `customer ${++names}`;
    await world.customer(name);
    await world.api.request('PUT', `/customers/${world.id(`customer ${name}`)}`, { body: { tax_exempt: exempt } });
    const stated = [];
    for (const [index, { off, lasts, of }] of coupons.entries()) {
      const coupon_code = `${name} ${index}`;
      const terms =
        'share' in off
          ? { type: 'percentage', percentage_off: off.share }
          : {
              type: 'fixed',
              currency,
              amount_off: new Decimal(off.minor).div(new Decimal(10).pow(CURRENCIES[currency])).toFixed(),
            };
      await world.post('/coupons', { name: coupon_code, coupon_code, ...terms, ...lasts });
      stated.push({ coupon_code, price_id: of === null ? null : prices[currency]![of]! });
    }
    await world.subscribe(name, currency, {
      currency,
      subscription_coupons: stated,
      tax_rate_overrides: rates.map((rate) => ({ tax_rate_code: codes[rate]!, currency })),
    });
    return name;
  }

  const lastOf = async (name: string) => {
    const { items } = await world.get(`/invoices?subscription_id=${world.id(`subscription ${name}`)}`);
    items.sort((a, b) => b.billing_sequence! - a.billing_sequence!);
    return world.get(`/invoices/${items[0]!.id}?expand=coupon_applications,tax_applied`);
  };

  const LINE = ['display_name', 'quantity', 'amount', 'line_item_discount', 'invoice_level_discount'];
  const TAXES = ['tax_amount', 'included_tax_amount', 'taxes'];
  const picked = (record: Record<string, unknown>, fields: readonly string[]) =>
    fields.map((field) => record[field] ?? null);
  const shares = ({ taxes, ...line }: InvoiceLine) => ({
    ...line,
    taxes: (taxes ?? []).map(({ tax_rate_id, tax_amount }) => [tax_rate_id, tax_amount]),
  });

  function beforeTaxes(invoice: Invoice) {
    return {
      lines: invoice.line_items.map((line) => picked(line, LINE)),
      coupons: invoice.coupon_applications!.map((one) => [one.coupon_id, one.discounted_amount]),
      sums: [invoice.subtotal, invoice.total_discount],
    };
  }

  function withTaxes(invoice: Invoice) {
    return {
      ...beforeTaxes(invoice),
      taxed: invoice.line_items.map((line) => picked(shares(line), TAXES)),
      rates: (invoice.taxes ?? []).map((one) => [one.tax_rate_id, one.taxable_amount, one.tax_amount]),
      totals: [invoice.total_tax, invoice.total, invoice.amount_due, invoice.amount_remaining],
    };
  }

  function addsUp(invoice: Invoice, places: number): void {
    const over = (field: Amount) => sumDecimals(invoice.line_items.map((line) => new Decimal(line[field])));
    const own = (field: 'subtotal' | 'total_discount' | 'total_tax' | 'total') => new Decimal(invoice[field]);
    const text = (...amounts: Decimal[]) => amounts.map((amount) => amount.toFixed());
    expect(text(over('amount'), over('line_item_discount').plus(over('invoice_level_discount')))).to.deep.equal(
      text(own('subtotal'), own('total_discount')),
    );
    expect(text(over('tax_amount'))).to.deep.equal(text(own('total_tax')));
    const rest = own('subtotal').minus(own('total_discount')).plus(own('total_tax'));
    expect(text(Decimal.max(0, rest))).to.deep.equal(text(own('total')));
    for (const line of invoice.line_items) {
      const { amount, line_item_discount, invoice_level_discount } = line;
      const net = new Decimal(amount).minus(line_item_discount).minus(invoice_level_discount);
      expect([net.lt(0), new Decimal(line_item_discount).lt(0)], JSON.stringify(line)).to.deep.equal([false, false]);
      for (const field of [...LINE.slice(2), 'tax_amount', 'included_tax_amount'] as Amount[])
        expect(new Decimal(line[field]).decimalPlaces(), `${field} of ${line[field]}`).to.be.at.most(places);
      const byRate = (line.taxes ?? []).map(({ tax_amount }) => new Decimal(tax_amount));
      expect(text(sumDecimals(byRate))).to.deep.equal(
        text(new Decimal(line.tax_amount).plus(line.included_tax_amount)),
      );
    }
    const taken = invoice.coupon_applications!.map((one) => new Decimal(one.discounted_amount));
    expect(text(sumDecimals(taken))).to.deep.equal(text(own('total_discount')));
  }

  it('a preview, the draft and the final invoice say the same, and add up', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(customer, { minLength: 6, maxLength: 12 }), async (drawn) => {
        year += 1;
        await world.on(`${year}-01-01`);
        const living: { name: string; drawn: Drawn }[] = [];
        for (const one of drawn) living.push({ name: await subscribe(one), drawn: one });
        for (const [month, end] of MONTHS.entries()) {
          for (const { name, drawn: one } of living)
            if (one.used[month]! > 0) await world.use(name, 'calls', one.used[month]!);
          await world.waitForPipeline();
          const previews = new Map<string, Invoice>();
          for (const { name } of living) previews.set(name, await world.preview(name));
          await world.on(`${year}${end.slice(4)}`);
          for (const { name } of living) {
            const draft = await lastOf(name);
            expect(draft.invoice_status, name).to.equal('DRAFT');
            expect(beforeTaxes(draft), name).to.deep.equal(beforeTaxes(previews.get(name)!));
          }
          await world.finalize();
          for (const { name, drawn: one } of living) {
            const final = await lastOf(name);
            expect(final.invoice_status).to.equal('FINALIZED');
            expect(withTaxes(final), name).to.deep.equal(withTaxes(previews.get(name)!));
            addsUp(final, CURRENCIES[one.currency]);
            // The program that customers check with computes all of it by itself.
            if (month === 1) expect((await check(await provenBy(world.api, final.id))).differences).to.deep.equal([]);
            met.discounted += final.coupon_applications!.length;
            met.taxed += final.taxes?.length ?? 0;
          }
        }
        for (const { name } of living) await world.cancel(name);
      }),
      { numRuns: samples(3) },
    );
    expect(met.discounted).to.be.above(0);
    expect(met.taxed).to.be.above(0);
  });
});
