/** The live list of events and the thread of an event, by the requests that they send. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { type ConsoleApp, declareTests, startConsole, waitUntilShown } from '../../support/console.ts';

/** Other reads are repeated twice, so that four refusals show that a thread is repeated more often. */
const REFUSALS = 4;

describe('events in the console', function () {
  this.timeout(240_000);
  let app: ConsoleApp;
  before(async () => {
    app = await startConsole();
    const counted = { event_name: 'completion', reset_usage: 'BILLING_PERIOD' };
    await app.send('POST', '/meters', { ...counted, name: 'Requests', aggregation: { type: 'COUNT' } });
    await sendEvent('first', 'completion');
  });
  after(() => app?.stop());
  const test = declareTests(() => app);

  const sendEvent = (external_customer_id: string, event_name: string) =>
    app.send('POST', '/events', { event_id: `event-of-${external_customer_id}`, event_name, external_customer_id });
  const findRow = (page: Page, external_customer_id: string) =>
    page.getByRole('table', { name: 'Events' }).getByRole('row').filter({ hasText: external_customer_id });

  test('a live list reads the faults once, and learns those of new events from the stream', async () => {
    const { page } = await app.open('/plans');
    await waitUntilShown(page);
    const reads: string[] = [];
    page.on('request', (request) => {
      const { pathname, search, searchParams } = new URL(request.url());
      if (pathname === '/v1/events/uncounted' && !searchParams.has('counts')) reads.push(search);
    });
    const stream = page.waitForResponse(/\/v1\/events\/stream/);
    const faults = page.waitForResponse(/\/v1\/events\/uncounted\?(?!.*counts)/);
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Events' }).click();
    await Promise.all([stream, faults, findRow(page, 'first').waitFor()]);
    for (const customer of ['second', 'third', 'fourth']) {
      await sendEvent(customer, 'completion');
      await findRow(page, customer).getByText('counted').waitFor();
    }
    await sendEvent('fifth', 'completoin');
    await findRow(page, 'fifth').getByText('no meter').waitFor();
    expect(reads).to.have.length(1);
  });

  test('a thread is read again while the service refuses it with Retry-After', async () => {
    const { page } = await app.open('/events', { refusals: [503] });
    await waitUntilShown(page);
    let requests = 0;
    await page.route('**/v1/events/event-of-first/thread', (route) => {
      requests += 1;
      if (requests > REFUSALS) return route.continue();
      const body = JSON.stringify({ code: 'unavailable', message: 'the event is being processed' });
      return route.fulfill({ status: 503, headers: { 'retry-after': '1' }, contentType: 'application/json', body });
    });
    await findRow(page, 'first').click();
    await page.getByText('no price uses it').waitFor();
    expect(requests).to.equal(REFUSALS + 1);
    expect(await page.getByRole('alert').count()).to.equal(0);
  });
});
