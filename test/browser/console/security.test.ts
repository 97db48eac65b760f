/** The console against an attacker: hostile names and properties, foreign pages, a planted session, frames. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { Response } from 'playwright-core';
import { type ConsoleApp, declareTests, startConsole, waitUntilShown } from '../../support/console.ts';
import { listPages } from '../../support/console-pages.ts';
import { type SeededRecords, seedRecords } from '../../support/console-records.ts';

const HOSTILE = `<img src=x onerror="window.hacked=1">"><script>window.hacked=1</script>`;

describe('the console against an attacker', function () {
  this.timeout(240_000);
  let app: ConsoleApp;
  let records: SeededRecords;
  let foreign: Server;
  before(async () => {
    app = await startConsole();
    records = await seedRecords(app, { name: HOSTILE });
    foreign = createServer((request, response) => {
      response.setHeader('content-type', 'text/html');
      response.end(FOREIGN_PAGES[request.url!]?.(app.url, app.environment_id) ?? '');
    });
    foreign.listen(0, '127.0.0.1');
    await once(foreign, 'listening');
  });
  after(async () => {
    foreign?.close();
    await app?.stop();
  });
  const test = declareTests(() => app);

  const foreignUrl = (path: string) => `http://127.0.0.1:${(foreign.address() as AddressInfo).port}${path}`;

  test('shows hostile names, metadata and event properties as text on every page', async () => {
    const { page } = await app.open('/', { environment_id: records.environment_id });
    const shown: string[] = [];
    for (const path of listPages(records).filter((each) => !/sheet=|do=/.test(each))) {
      await page.goto(`${app.url}/env/${records.environment_id}${path}`);
      await waitUntilShown(page);
      if ((await page.getByText(HOSTILE).count()) > 0) shown.push(path);
      expect(await page.evaluate<unknown>('window.hacked'), path).to.equal(undefined);
    }
    const { customer_id, subscription_id, invoice_id, draft_id, event_id } = records;
    const lists = [
      '/customers',
      `/customers/${customer_id}`,
      '/subscriptions',
      `/subscriptions/${subscription_id}`,
      '/invoices',
      `/invoices/${invoice_id}`,
      `/invoices/${draft_id}`,
      `/events?event=${event_id}`,
    ];
    expect(shown).to.include.members(lists);
  });

  test('hides the cookie of the session from scripts, and binds it to this site', async () => {
    const { page, context } = await app.open('/');
    await waitUntilShown(page);
    const [cookie] = await context.cookies();
    expect(cookie).to.include({ httpOnly: true, sameSite: 'Strict', path: '/' });
    expect(await page.evaluate('document.cookie')).to.equal('');
  });

  test('ignores a foreign page that posts a form or sends a request with the cookie', async () => {
    const { page: own, context } = await app.open('/');
    await waitUntilShown(own);
    const page = await context.newPage();
    const answers: Response[] = [];
    page.on('response', (response) => {
      if (response.request().method() === 'POST') answers.push(response);
    });
    for (const path of ['/form', '/fetch']) {
      await page.goto(foreignUrl(path));
      await page.locator('#done').waitFor({ state: 'attached' });
    }
    // A port is not a part of the site, so the browser sends the cookie; without it the status would be 401.
    expect(answers.map((answer) => answer.status())).to.deep.equal([403, 403, 403]);
    const { items } = await app.send<{ items: unknown[] }>('GET', '/customers?external_id=planted');
    expect(items).to.deep.equal([]);
    const all = await app.send<{ items: { external_id: string }[] }>('GET', '/customers?limit=50');
    expect(all.items.map(({ external_id }) => external_id)).to.not.include('planted');
  });

  test('cannot be shown in a frame', async () => {
    const { context } = await app.open('/');
    const page = await context.newPage();
    await page.goto(foreignUrl('/frame'));
    const frame = await (await page.locator('iframe').elementHandle())!.contentFrame();
    await page.waitForLoadState();
    expect(frame!.url()).to.match(/^chrome-error:/);
    expect(await frame!.locator('main').count()).to.equal(0);
  });

  test('stays in its environment while a link to another one is only under the pointer', async () => {
    const wanted = { name: 'Live', type: 'production' };
    const other = await app.send<{ id: string }>('POST', '/environments', wanted);
    const { page } = await app.open('/first-bill?step=production');
    // The link is prepared under the pointer: the browser loads the script of its page.
    const prepared = page.waitForResponse((response) => /\/assets\/settings-page/.test(response.url()));
    await page.locator(`a[href^="/env/${other.id}/settings"]`).first().hover();
    await prepared;
    const sent = page.waitForRequest((request) => new URL(request.url()).pathname === '/v1/customers');
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Customers' }).click();
    expect((await sent).headers()['x-environment-id']).to.equal(app.environment_id);
  });

  test('does not adopt a session that somebody planted', async () => {
    const { page, context } = await app.open(`${app.url}/sign-in`, { session: 'none', refusals: [401] });
    const [own] = await (await app.open('/')).context.cookies();
    const planted = { ...own!, value: 'A'.repeat(own!.value.length) };
    await context.addCookies([planted]);
    await page.reload();
    await page.getByRole('button', { name: 'Create an account for a new company' }).click();
    await page.getByLabel('Company').fill('Example Inc.');
    await page.getByLabel('E-mail').fill('ada@example.com');
    await page.getByRole('textbox', { name: 'Password' }).fill('correct horse battery');
    await page.getByRole('button', { name: 'Create account' }).click();
    await page.getByRole('navigation', { name: 'Main' }).waitFor();
    const [after] = await context.cookies();
    expect(after!.value).to.not.equal(planted.value);
    const response = await fetch(`${app.url}/v1/auth/session`, {
      headers: { cookie: `${planted.name}=${planted.value}` },
    });
    expect(response.status).to.equal(401);
  });
});

const BODY = '{"external_id":"planted","name":"Planted"}';
const FOREIGN_PAGES: Record<string, (url: string, environment_id: string) => string> = {
  '/form': (
    url,
    environment_id,
  ) => `<iframe name="answer" onload="window.loads=(window.loads||0)+1;if(loads>1)document.body.append(
      Object.assign(document.createElement('i'),{id:'done'}))"></iframe>
    <form method="post" enctype="text/plain" target="answer" action="${url}/v1/customers?environment_id=${environment_id}">
      <input name='${BODY.slice(0, -1)},"a":"' value='"}'></form>
    <script>addEventListener('load', () => setTimeout(() => document.forms[0].submit()))</script>`,
  '/fetch': (url, environment_id) => `<script>
    const send = (type) => fetch('${url}/v1/customers?environment_id=${environment_id}', { method: 'POST', credentials: 'include', mode: 'no-cors',
      headers: { 'content-type': type }, body: '${BODY}' }).catch(() => undefined);
    Promise.all([send('text/plain'), send('application/x-www-form-urlencoded')]).then(() =>
      document.body.append(Object.assign(document.createElement('i'), { id: 'done' })));
  </script><body></body>`,
  '/frame': (url) => `<iframe src="${url}/"></iframe>`,
};
