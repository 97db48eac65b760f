/**
 * The documentation page in a browser. CPU is that of the page's own thread, which other work on the machine does not lengthen. Needs
 * `chromium` (Debian's package), so it is asked for by name.
 */
import { expect } from 'chai';
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core';
import { startTestApi, type TestApi } from '../support/api.ts';

/** A document with this many operations took Swagger UI four seconds, and each opened operation three. */
const CPU_SECONDS_MAX = 2;

describe('the documentation page in a browser', function () {
  this.timeout(120_000);
  let api: TestApi;
  let browser: Browser;
  let page: Page;
  let session: CDPSession;
  const errors: string[] = [];

  before(async () => {
    api = await startTestApi();
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
    page = await browser.newPage();
    page.on('pageerror', ({ message }) => errors.push(message));
    session = await page.context().newCDPSession(page);
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  });
  after(async () => {
    await browser.close();
    await api.stop();
  });

  const cpuSeconds = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'TaskDuration')!.value;
  };
  const operation = (id: string) => page.locator(`[id$="-${id}"]:visible`);

  it('shows its first screen soon', async () => {
    await page.goto(`${api.url}/docs/`);
    await page.getByRole('heading', { name: 'Farthing API' }).waitFor();
    expect(await page.locator('nav details').count()).to.be.above(30);
    expect(await cpuSeconds()).to.be.below(CPU_SECONDS_MAX);
  });

  it('opens an operation soon, from the list and by its address, with its samples and its schema', async () => {
    const before = await cpuSeconds();
    await page.locator('nav summary', { hasText: 'Subscriptions' }).click();
    await page.locator('nav a', { hasText: 'Subscribe a customer to a plan' }).click();
    const opened = operation('createSubscription');
    await opened.getByText('Code samples').waitFor();
    expect((await cpuSeconds()) - before).to.be.below(CPU_SECONDS_MAX);
    await opened.getByRole('tab', { name: 'Schema' }).first().click();
    await opened.getByText('external_customer_id').first().waitFor();
    const other = await browser.newPage();
    await other.goto(`${api.url}/docs/#/Audit%20log/listAuditLogs`);
    await other.locator('[id$="-listAuditLogs"]').getByText('Code samples').waitFor();
    await other.close();
  });

  it('keeps the key for other tags, and sends requests with it', async () => {
    await page.getByRole('button', { name: 'Authorize' }).click();
    await page.locator('.auth-container input').first().fill(api.key);
    await page.locator('.auth-container button.authorize').first().click();
    await page.locator('.btn-done').first().click();
    await page.locator('#filter').fill('list roles');
    await page.locator('nav a:visible', { hasText: 'List roles' }).click();
    const opened = operation('listRbacRoles');
    await opened.getByRole('button', { name: 'Try it out' }).click();
    await opened.getByRole('button', { name: 'Execute' }).click();
    expect(await opened.locator('.live-responses-table .response').first().textContent()).to.match(/^200/);
    expect(errors).to.deep.equal([]);
  });
});
