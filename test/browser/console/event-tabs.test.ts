/** Corrected and late events: their tabs, the thread with the invoice that bills an event, and the marks on the axis of usage. */
import { expect } from 'chai';
import { type ConsoleApp, declareTests, startConsole, type Theme } from '../../support/console.ts';
import { type ClockedPlace, createBilledPlace } from '../../support/console-records.ts';
import { until } from '../../support/until.ts';

const VARIANTS: readonly { width: number; theme: Theme }[] = [
  { width: 1440, theme: 'light' },
  { width: 390, theme: 'dark' },
];

describe('corrected and late events in the console', function () {
  this.timeout(240_000);
  let app: ConsoleApp;
  let place: ClockedPlace & { invoice_number: string };
  before(async () => {
    app = await startConsole();
    place = await createBilledPlace(app, { tokens: ['1500000', '250000', '40000'] });
    const late = { event_id: 'late-event', event_name: 'completion', external_customer_id: 'northwind' };
    await place.send('POST', '/events', {
      ...late,
      timestamp: '2026-03-20T12:00:00Z',
      properties: { tokens_in: '1000' },
    });
    await place.send('POST', '/events/completion-1/void', { reason: 'sent by a load test' });
    const event = { event_name: 'completion', external_customer_id: 'northwind', timestamp: '2026-03-01T00:03:00Z' };
    await place.send('POST', '/events/completion-2/replace', {
      event: { ...event, properties: { model: 'wren-2', tokens_in: '4000' } },
      reason: 'counted in characters',
    });
    await until('the corrections are applied', async () => {
      const { items } = await place.send<Corrections>('GET', '/events/corrections?state=applied');
      return items.length === 2;
    });
  });
  after(() => app?.stop());
  const test = declareTests(() => app);

  for (const variant of VARIANTS) {
    describe(`${variant.width} px, ${variant.theme}`, () => {
      const open = (path: string) => app.open(path, { ...variant, environment_id: place.environment_id });

      test('a correction is found, with its reason, and its event opens with the invoice that bills it', async () => {
        const { page } = await open('/events');
        await page.getByRole('link', { name: 'Corrected 2' }).click();
        const table = page.getByRole('table', { name: 'Corrected' });
        await table.getByRole('row').filter({ hasText: 'sent by a load test' }).getByText('voided').waitFor();
        await page.getByRole('radio', { name: 'Voided' }).locator('xpath=..').click();
        await table.getByText('counted in characters').waitFor({ state: 'detached' });
        await page.getByRole('radio', { name: 'All corrections' }).locator('xpath=..').click();
        await table.getByRole('row').filter({ hasText: 'counted in characters' }).click();
        await page.getByText('with the difference of the correction').waitFor();
        await page.getByRole('link', { name: place.invoice_number }).waitFor();
        expect(new URL(page.url()).searchParams.get('event')).to.equal('completion-2');
        expect(new URL(page.url()).searchParams.get('tab')).to.equal('corrected');
      });

      test('a late event names the invoice that it missed, and is on the next one', async () => {
        const { page } = await open('/events?tab=late');
        await page.getByRole('link', { name: 'Late 1', exact: true }).waitFor();
        const row = page.getByRole('table', { name: 'Late' }).getByRole('row').filter({ hasText: 'completion' });
        await row.getByRole('link', { name: place.invoice_number }).waitFor();
        await row.getByText('not yet').waitFor();
        await row.getByText('completion', { exact: true }).click();
        await page.getByText('Next invoice', { exact: true }).waitFor();
        expect(await page.getByText('Billed on', { exact: true }).count()).to.equal(0);
      });

      test('an event that is billed shows its invoice, which opens its line', async () => {
        const { page } = await open('/events?event=completion-0');
        await page.getByText('Billed on', { exact: true }).waitFor();
        expect(await page.getByText('Next invoice', { exact: true }).count()).to.equal(0);
        await page.getByRole('link', { name: place.invoice_number }).click();
        await page.getByRole('heading', { level: 1, name: place.invoice_number }).waitFor();
        await page.getByText('arithmetic checked').waitFor();
      });

      test('usage has a mark where events were corrected', async () => {
        const { page } = await open('/usage?from=2026-03-01&to=2026-04-01');
        await page.getByText(/1 Mar 2 events corrected/).waitFor();
      });

      test('an environment without them says what would be there', async () => {
        const { page } = await app.open('/events?tab=corrected', variant);
        await page.getByRole('heading', { name: 'No event was corrected' }).waitFor();
        await page.getByRole('link', { name: 'Late', exact: true }).click();
        await page.getByRole('heading', { name: 'No event came late' }).waitFor();
      });
    });
  }
});

type Corrections = { items: { id: string }[] };
