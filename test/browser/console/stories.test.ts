/** Whole stories of people at the console, by role and label, in both themes and three widths. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import {
  type ConsoleApp,
  declareTests,
  findViolations,
  measureOverflow,
  startConsole,
  type Theme,
  waitUntilShown,
} from '../../support/console.ts';
import { createBilledPlace, createClock, createUsagePlan } from '../../support/console-records.ts';

const VARIANTS: readonly { width: number; theme: Theme }[] = [
  { width: 1440, theme: 'light' },
  { width: 1024, theme: 'dark' },
  { width: 390, theme: 'light' },
];
const START = new Date('2026-03-01T00:00:00Z');
const NEXT_MONTH = new Date('2026-04-02T00:00:00Z');

describe('stories of the console', function () {
  this.timeout(240_000);
  let app: ConsoleApp;
  before(async () => {
    app = await startConsole();
  });
  after(() => app?.stop());
  const test = declareTests(() => app);

  for (const variant of VARIANTS) {
    describe(`${variant.width} px, ${variant.theme}`, () => {
      test('a new company gets to its first invoice without the API', async () => {
        const { page } = await app.open(`${app.url}/`, { ...variant, session: 'none', refusals: [401] });
        await page.getByRole('button', { name: 'Create an account for a new company' }).click();
        await page.getByLabel('Company').fill('Example Inc.');
        await page.getByLabel('E-mail').fill(`ada.${variant.width}@example.com`);
        await page.getByRole('textbox', { name: 'Password' }).fill('correct horse battery');
        await page.getByRole('button', { name: 'Create account' }).click();
        await page.getByRole('heading', { level: 1, name: 'Your first bill, in five steps' }).waitFor();
        await page.getByRole('button', { name: /^Tokens by model/ }).click();
        await page.getByRole('button', { name: 'Send it for me' }).click();
        await page
          .getByText(/^arrived/)
          .first()
          .waitFor();
        await openStep(page, 'Subscribe a customer');
        await page.getByLabel('Customer', { exact: true }).fill('Northwind Labs');
        await page.getByRole('button', { name: 'Subscribe', exact: true }).click();
        await page
          .getByRole('link', { name: /^Northwind Labs/ })
          .first()
          .waitFor();
        await page.goto(
          `${page
            .url()
            .split('?')[0]!
            .replace(/\/(first-bill)?$/, '')}/invoices`,
        );
        await page.getByRole('row').filter({ hasText: 'Northwind Labs' }).first().click();
        await page.getByRole('heading', { level: 1, name: /^INV-/ }).waitFor();
        await page.getByRole('row').filter({ hasText: 'Platform fee' }).getByText('500.00').first().waitFor();
      });

      test('why is this number? from the invoice to the event in four clicks, and back', async () => {
        const place = await createBilledPlace(app, { tokens: ['1500000', '250000'] });
        const { page } = await app.open('/invoices', { ...variant, environment_id: place.environment_id });
        await page.getByRole('row').filter({ hasText: place.invoice_number }).click();
        await page.getByRole('table', { name: 'Lines' }).getByRole('button', { name: 'Why 45.00?' }).click();
        await page.getByText('arithmetic checked').waitFor();
        await page.getByRole('link', { name: 'Show the events' }).click();
        await page.getByRole('heading', { level: 1, name: 'Events' }).waitFor();
        await page.getByRole('row').filter({ hasText: '250000' }).click();
        const sheet = page.locator('[role=dialog], [role=complementary]');
        await sheet.getByText('250,000').first().waitFor();
        await page.goBack();
        await page.getByRole('heading', { level: 1, name: 'Events' }).waitFor();
        await page.goBack();
        await page.getByRole('heading', { name: 'Why 45.00?' }).waitFor();
        await page.getByRole('heading', { level: 1, name: place.invoice_number }).waitFor();
      });

      test('a misspelt event is found, mended and billed', async () => {
        const place = await createBilledPlace(app, { tokens: ['1000000'], event_name: 'completoin', is_billed: false });
        const { page } = await app.open('/events', {
          ...variant,
          environment_id: place.environment_id,
          // A preview is refused while events wait for the pipeline, and the page asks again.
          refusals: [503],
        });
        await page.getByRole('link', { name: /^Not counted/ }).click();
        await page.getByRole('row').filter({ hasText: 'completoin' }).getByRole('button', { name: 'Mend…' }).click();
        const dialogue = page.getByRole('dialog', { name: 'Mend the event' });
        await dialogue.getByText('What it will change').waitFor();
        await dialogue.getByRole('button', { name: 'Mend event' }).click();
        await dialogue.waitFor({ state: 'detached' });
        await place.advance(NEXT_MONTH);
        await page.goto(`${app.url}/env/${place.environment_id}/invoices`);
        await page.getByRole('row').filter({ hasText: '30.00' }).first().click();
        await page.getByRole('table', { name: 'Lines' }).getByRole('button', { name: 'Why 30.00?' }).waitFor();
      });

      test('a price is built, its cost read, published, and seen on the next invoice to the cent', async () => {
        const place = await createClock(app, START);
        const { plan_id } = await createUsagePlan(place, { name: 'Scale', is_priced: false });
        const { page } = await app.open(`/plans/${plan_id}/prices/new`, {
          ...variant,
          environment_id: place.environment_id,
          // A price is incomplete while it is typed.
          refusals: [400],
        });
        await page.getByLabel('Meter', { exact: true }).first().click();
        await page.getByRole('option', { name: /^Input tokens/ }).click();
        await page.getByRole('radio', { name: 'Graduated' }).check();
        await page.getByRole('radio', { name: '1,000' }).check();
        if ((await page.getByRole('textbox', { name: 'Unit price of tier 2' }).count()) === 0)
          await page.getByRole('button', { name: 'Add a tier' }).click();
        await page.getByRole('textbox', { name: 'Up to, inclusive of tier 1' }).fill('1 million');
        await page.getByRole('textbox', { name: 'Unit price of tier 1' }).fill('0.03');
        await page.getByRole('textbox', { name: 'Unit price of tier 2' }).fill('0.0123');
        await page.getByRole('textbox', { name: 'Cost of a quantity' }).fill('1,234,567');
        // 1,000,000 × 0.00003 + 234,567 × 0.0000123
        await page.getByRole('button', { name: 'Why $32.89?' }).waitFor();
        await page.getByRole('button', { name: 'Publish…' }).click();
        await page.getByRole('button', { name: 'Publish price' }).click();
        await page.getByRole('heading', { level: 1, name: 'Scale' }).waitFor();
        await place.subscribe(plan_id);
        await place.useTokens(['1234567']);
        await place.advance(NEXT_MONTH);
        await page.goto(`${app.url}/env/${place.environment_id}/invoices`);
        await page.getByRole('row').filter({ hasText: '32.89' }).first().click();
        await page.getByRole('table', { name: 'Lines' }).getByRole('button', { name: 'Why 32.89?' }).click();
        await page.getByText('arithmetic checked').waitFor();
      });

      test('a plan is changed, and the preview is the invoice', async () => {
        const place = await createClock(app, START);
        const scale = await createUsagePlan(place, { name: 'Scale', fee: '500' });
        const starter = await createUsagePlan(place, { name: 'Starter', fee: '49' });
        const subscription_id = await place.subscribe(starter.plan_id);
        expect(scale.plan_id).to.be.a('string');
        await place.advance(new Date('2026-03-16T00:00:00Z'));
        const { page } = await app.open(`/subscriptions/${subscription_id}`, {
          ...variant,
          environment_id: place.environment_id,
        });
        await page.getByRole('button', { name: 'Change plan…' }).click();
        await page
          .getByLabel(/^New plan/)
          .first()
          .click();
        await page.getByRole('option', { name: 'Scale' }).click();
        const cost = page.getByRole('region', { name: 'What it costs' });
        await cost.getByText('upgrade').waitFor();
        const amounts = (await cost.innerText()).match(/\d[\d,]*\.\d\d/g)!;
        await page.getByRole('button', { name: 'Change plan', exact: true }).click();
        await cost.waitFor({ state: 'detached' });
        const { items } = await place.send<{ items: { total: string }[] }>('GET', '/invoices?limit=50');
        // The other one is the opening invoice.
        const [invoice] = items.filter(({ total }) => Number(total) !== 49);
        expect(amounts).to.include(invoice!.total);
      });

      test('tiers and a phase are agreed with a customer, and the preview is the invoices, to the cent', async () => {
        const place = await createClock(app, START);
        const { plan_id } = await createUsagePlan(place, { name: 'Scale', fee: '500' });
        const customer = { external_id: 'northwind', name: 'Northwind Labs' };
        const { id } = await place.send<{ id: string }>('POST', '/customers', customer);
        await place.useTokens(['1500000']);
        await place.advance(new Date('2026-03-10T00:00:00Z'));
        const { page } = await app.open(`/subscriptions/new?customer=${id}&plan=${plan_id}`, {
          ...variant,
          environment_id: place.environment_id,
          // A phase whose end is not typed completely is refused, and a preview while events wait for the pipeline.
          refusals: [400, 503],
        });
        await page.getByLabel('Start', { exact: true }).fill('2026-03-01');
        await page.getByRole('button', { name: 'Own tiers… Input tokens', exact: true }).click();
        const tiers = page.getByRole('group', { name: 'Input tokens', exact: true });
        await tiers.getByRole('radio', { name: '1 million' }).check();
        await tiers.getByRole('textbox', { name: 'Unit price of tier 1' }).fill('25');
        await page.locator('summary', { hasText: 'Phases' }).click();
        await page.getByRole('button', { name: 'Add a phase' }).click();
        await page.getByLabel('End of phase 1').fill('2026-02-01');
        await page.getByText('phases[0].end_date').first().waitFor();
        const isMarked = await page.getByLabel('End of phase 1').getAttribute('aria-invalid');
        expect(isMarked, 'the refused field').to.equal('true');
        await page.getByLabel('End of phase 1').fill('2026-03-16');
        const first = page.getByRole('region', { name: 'First invoice' });
        const fee = page.getByRole('textbox', { name: 'Amount: Platform fee, Phase 1' });
        await fee.fill('310 of');
        await first.getByText('$500.00').first().waitFor();
        await page.locator('summary', { hasText: 'Phases' }).click();
        await fee.waitFor({ state: 'hidden' });
        await page.getByRole('button', { name: 'Create subscription' }).click();
        // An amount that is not understood is not left out of the request: the form opens its part and leads back to it.
        await page.locator(':focus[aria-label="Amount: Platform fee, Phase 1"]').waitFor();
        await fee.fill('310');
        // 310 × 15/31 + 500 × 16/31, then 500 + 1,000,000 × 0.000025 + 500,000 × 0.00002
        await first.getByText('$408.06').waitFor();
        await first.getByText('$535.00').waitFor();
        // The bands at the top would cover what is scrolled below them.
        await page.evaluate('scrollTo(0, 0)');
        expect(await findViolations(page)).to.deep.equal([]);
        expect(await measureOverflow(page)).to.be.at.most(0);
        await page.getByRole('button', { name: 'Create subscription' }).click();
        await page.getByRole('heading', { level: 1, name: /Scale/ }).waitFor();
        await place.advance(NEXT_MONTH);
        const { items } = await place.send<{ items: { total: string }[] }>('GET', '/invoices?limit=50');
        expect(items.map(({ total }) => total)).to.have.members(['408.06', '535']);
      });

      test('entitlements and a tax rate are agreed with a customer', async () => {
        // Its time needs no clock, and a company has a limited number of environments.
        const own = `northwind-${variant.width}`;
        const { plan_id } = await createUsagePlan(app, { name: 'Scale', fee: '500' });
        const { id } = await app.send<{ id: string }>('POST', '/customers', { external_id: own });
        for (const [fields, granted] of [
          [{ name: 'Projects', type: 'static' }, { static_value: '3' }],
          [{ name: 'Sign-in by SAML', type: 'boolean' }, {}],
        ] as const) {
          const feature = { ...fields, lookup_key: `${own}-${fields.type}` };
          const { id: feature_id } = await app.send<{ id: string }>('POST', '/features', feature);
          const entitlement = { plan_id, feature_id, feature_type: fields.type, ...granted };
          await app.send('POST', '/entitlements', entitlement);
        }
        await app.send('POST', '/taxes/rates', { name: 'VAT', code: own, percentage_value: '19' });
        const terms = encodeURIComponent('["entitlements","taxes"]');
        const { page } = await app.open(`/subscriptions/new?customer=${id}&plan=${plan_id}&terms=${terms}`, variant);
        await page.getByLabel('Projects').fill('25');
        await page.getByLabel('Sign-in by SAML').first().click();
        await page.getByRole('option', { name: 'Not granted' }).click();
        await page.getByLabel('Tax rates').first().click();
        await page.getByRole('option', { name: `VAT (${own})` }).click();
        await page.keyboard.press('Escape');
        await page.getByRole('region', { name: 'First invoice' }).getByText('$595.00').first().waitFor();
        await page.evaluate('scrollTo(0, 0)');
        expect(await findViolations(page)).to.deep.equal([]);
        expect(await measureOverflow(page)).to.be.at.most(0);
        await page.getByRole('button', { name: 'Create subscription' }).click();
        await page.getByRole('heading', { level: 1, name: /Scale/ }).waitFor();
        const { items } = await app.send<{ items: { total: string }[] }>('GET', `/invoices?customer_id=${id}&limit=50`);
        expect(items.map(({ total }) => total)).to.deep.equal(['595']);
        const { features } = await app.send<{ features: Granted[] }>('GET', `/customers/${id}/entitlements`);
        expect(
          features.map(({ feature, entitlement }) => [feature.name, entitlement.is_enabled, entitlement.static_values]),
        ).to.have.deep.members([
          ['Projects', true, ['25']],
          ['Sign-in by SAML', false, []],
        ]);
      });

      test('support finds a customer by the number of an invoice', async () => {
        const place = await createBilledPlace(app, { tokens: ['1000000'] });
        const { page } = await app.open('/', { ...variant, environment_id: place.environment_id });
        await waitUntilShown(page);
        await page.keyboard.press('Control+k');
        const search = page.getByRole('combobox', { name: 'Search records and actions' });
        await search.fill(place.invoice_number);
        await page
          .getByRole('option', { name: new RegExp(place.invoice_number) })
          .first()
          .waitFor();
        await search.press('Enter');
        await page.getByRole('heading', { level: 1, name: place.invoice_number }).waitFor();
        await page.getByRole('link', { name: 'Northwind Labs' }).first().click();
        await page.getByRole('heading', { level: 1, name: 'Northwind Labs' }).waitFor();
      });
    });
  }
});

/** Opens a step of the first bill, unless it has opened by itself. */
async function openStep(page: Page, name: string): Promise<void> {
  const step = page.getByRole('button', { name, exact: true });
  await step.waitFor();
  if ((await step.getAttribute('aria-expanded')) === 'false') await step.click();
}

type Granted = { feature: { name: string }; entitlement: { is_enabled: boolean; static_values: string[] } };
