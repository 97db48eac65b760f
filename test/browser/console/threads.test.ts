/** The written-out sums of invoice threads equal the amounts of the API, over random prices and usage. */
import { expect } from 'chai';
import { Decimal } from 'decimal.js';
import { type ConsoleApp, declareTests, startConsole } from '../../support/console.ts';
import { drawPrice } from '../../support/console-prices.ts';
import { createClock, createUsagePlan } from '../../support/console-records.ts';

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];
const START = new Date('2026-03-01T00:00:00Z');
const NEXT_MONTH = new Date('2026-04-02T00:00:00Z');

type Line = { id: string; amount: string; quantity: string; price_id: string; display_name: string };

describe('threads of random invoices', function () {
  this.timeout(240_000);
  let app: ConsoleApp;
  let lines: Line[];
  let base: string;
  before(async () => {
    app = await startConsole();
    const place = await createClock(app, START);
    const { plan_id, meter_id } = await createUsagePlan(place, { name: 'Random', is_priced: false });
    for (const seed of SEEDS) await place.send('POST', '/prices', drawPrice(seed, { plan_id, meter_id }));
    await place.subscribe(plan_id);
    await place.useTokens(['1234567', '89', '345678']);
    await place.advance(NEXT_MONTH);
    const { items } = await place.send<{ items: { id: string; line_items: Line[] }[] }>('GET', '/invoices?limit=50');
    const invoice = items.find(({ line_items }) => line_items.length >= SEEDS.length)!;
    lines = invoice.line_items;
    base = `${app.url}/env/${place.environment_id}/invoices/${invoice.id}`;
  });
  after(() => app?.stop());
  const test = declareTests(() => app);

  for (const seed of SEEDS) {
    test(`price ${seed}: the rows add up to the amount of the line`, async () => {
      const line = lines.find(({ display_name }) => display_name === `Price ${seed}`)!;
      const { page } = await app.open(`${base}?why=${line.id}`);
      await page.getByText('arithmetic checked').waitFor();
      const knot = page
        .getByRole('listitem')
        .filter({ hasText: /^Price/ })
        .first();
      const rows = await knot
        .locator('tr')
        .evaluateAll<string[], HTMLElementLike>((all) =>
          all.map(({ lastElementChild }) => lastElementChild?.textContent ?? '–'),
        );
      const amounts = rows.map((text) => new Decimal(text.replaceAll(',', '').replace('−', '-')));
      // With several rows the last one is their total.
      const parts = amounts.length > 1 ? amounts.slice(0, -1) : amounts;
      const sum = parts.reduce((total, amount) => total.plus(amount), new Decimal(0));
      expect(sum.toFixed()).to.equal(amounts.at(-1)!.toFixed());
      expect(sum.toDecimalPlaces(2, Decimal.ROUND_HALF_UP).toFixed(2)).to.equal(new Decimal(line.amount).toFixed(2));
    });
  }
});

type HTMLElementLike = { lastElementChild: { textContent: string } };
