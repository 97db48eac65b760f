/** The usage explorer with more groups than colours: the line of all others is exact, or a sentence says that there is none. */
import { expect } from 'chai';
import { type ConsoleApp, declareTests, findViolations, startConsole } from '../../support/console.ts';
import { type ClockedPlace, createClock } from '../../support/console-records.ts';

const MODELS = 15;
const RANGE = 'from=2026-03-01&to=2026-03-03';
const PRICE = {
  ...{ entity_type: 'PLAN', type: 'USAGE', billing_model: 'FLAT_FEE', invoice_cadence: 'ARREAR' },
  ...{ amount: '0.01', currency: 'usd', billing_period: 'MONTHLY' },
};

describe('usage of many groups', function () {
  this.timeout(240_000);
  let app: ConsoleApp;
  let place: ClockedPlace;
  const meters: Record<string, string> = {};
  before(async () => {
    app = await startConsole();
    place = await createClock(app, new Date('2026-03-01T00:00:00Z'));
    const plan = await place.send<{ id: string }>('POST', '/plans', { name: 'Scale' });
    for (const type of ['SUM', 'MAX']) {
      const meter = { name: `Tokens, ${type}`, event_name: 'completion', aggregation: { type, field: 'tokens_in' } };
      meters[type] = (await place.send<{ id: string }>('POST', '/meters', meter)).id;
      await place.send('POST', '/prices', { ...PRICE, entity_id: plan.id, meter_id: meters[type] });
    }
    await place.subscribe(plan.id);
    const models = Array.from({ length: MODELS }, (_, at) => ({
      model: `model-${String(at + 1).padStart(2, '0')}`,
      tokens_in: `${at + 1}.1`,
    }));
    const events = [...models, { tokens_in: '0.05' }].map((properties, at) => ({
      event_id: `event-${at}`,
      event_name: 'completion',
      external_customer_id: 'northwind',
      timestamp: '2026-03-01T12:00:00Z',
      properties,
    }));
    await place.send('POST', '/events/bulk', { events });
    await place.advance(new Date('2026-03-02T06:00:00Z'));
  });
  after(() => app?.stop());
  const test = declareTests(() => app);

  const open = (type: string) =>
    app.open(`/usage?meter=${meters[type]}&split=p:model&${RANGE}&window=DAY`, {
      environment_id: place.environment_id,
    });

  test('a sum: all others are one line, and the table lists every value', async () => {
    const { page } = await open('SUM');
    await page.getByRole('button', { name: 'as a table' }).click();
    const figures = page.getByRole('figure').getByRole('table');
    const cells = await figures.locator('tr').first().locator('th').allInnerTexts();
    expect(cells).to.deep.equal(['Time', 'model-15', 'model-14', 'model-13', 'model-12', 'model-11', 'Other']);
    // 1.1 + 2.1 + … + 10.1, and the event without a model
    const first = await figures.locator('tr').nth(1).locator('td').allInnerTexts();
    expect(first).to.deep.equal(['15.1', '14.1', '13.1', '12.1', '11.1', '56.05']);
    await page.getByText('Not listed: 3 smaller values.').waitFor();
    await page.getByRole('button', { name: 'Show 3 more' }).click();
    await page.getByRole('row').filter({ hasText: 'model-01' }).waitFor();
    expect(await page.getByText('Not listed').count()).to.equal(0);
    expect(await findViolations(page)).to.deep.equal([]);
  });

  test('a greatest value: what is not drawn is counted, because it does not add up', async () => {
    const { page } = await open('MAX');
    await page.getByText('Not drawn: 10 smaller values').waitFor();
    await page.getByRole('button', { name: 'as a table' }).click();
    const cells = await page.getByRole('figure').locator('tr').first().locator('th').allInnerTexts();
    expect(cells).to.have.length(6).and.not.include('Other');
  });
});
