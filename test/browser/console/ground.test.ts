/** The ground of the console in a browser: sign-in, addresses, preferences, roles, and the tools of a record. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { KEY_EFFECTS, KEY_ROWS } from '../../../console/shell/keys.ts';
import { type ConsoleApp, declareTests, findViolations, startConsole, waitUntilShown } from '../../support/console.ts';
import { until } from '../../support/until.ts';

const PASSWORD = 'correct horse battery';

describe('the ground of the console', function () {
  this.timeout(240_000);
  let app: ConsoleApp;
  let plan_id: string;
  before(async () => {
    app = await startConsole();
    plan_id = (await app.send<{ id: string }>('POST', '/plans', { name: 'Scale' })).id;
    await app.send('POST', '/environments', { name: 'Tests', type: 'development' });
  });
  after(() => app?.stop());
  const test = declareTests(() => app);

  const signIn = async (page: Page, email: string, password: string) => {
    await page.getByLabel('E-mail').fill(email);
    await page.getByRole('textbox', { name: 'Password' }).fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
  };
  const choose = async (page: Page, item: string) => {
    await page.getByRole('button', { name: /^(Zone, language and theme|Zeitzone, Sprache und Farben)/ }).click();
    await page.getByRole('menuitem', { name: item }).click();
  };

  test('is opened by the link, which is left neither in the address nor in the history', async () => {
    const { page } = await app.open('/plans');
    await page.getByRole('navigation', { name: 'Main' }).waitFor();
    const { page: linked } = await app.open(app.link, { session: 'none', refusals: [401, 403] });
    const token = app.link.split('#link=')[1]!;
    await linked.getByRole('heading', { name: 'Sign in' }).waitFor();
    await linked.getByRole('alert').getByText('The link has been used').waitFor();
    const state = await linked.evaluate<string>(
      'JSON.stringify([location.href, history.state, document.cookie, { ...localStorage }, { ...sessionStorage }])',
    );
    expect(state).to.not.contain(token);
    await linked.reload();
    expect(linked.url()).to.not.contain(token);
    await linked.goBack();
    expect(linked.url()).to.not.contain(token);
  });

  test('makes an account, signs out, and keeps the page of a link through the sign-in', async () => {
    const { page } = await app.open(`${app.url}/`, { session: 'none', refusals: [401] });
    await page.getByRole('button', { name: 'Create an account for a new company' }).click();
    await page.getByLabel('Company').fill('Example Inc.');
    await page.getByLabel('E-mail').fill('ada@example.com');
    await page.getByRole('textbox', { name: 'Password' }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Create account' }).click();
    await page.getByRole('navigation', { name: 'Main' }).waitFor();
    // An environment without an invoice leads to the first bill.
    const home = /^.*\/env\/env_\w+/.exec(page.url())![0];
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.goto(`${home}/plans?view=archived`);
    await signIn(page, 'ada@example.com', PASSWORD);
    await page.getByRole('heading', { level: 1, name: 'Plans' }).waitFor();
    expect(page.url()).to.equal(`${home}/plans?view=archived`);
  });

  test('refuses a wrong password and leads to no foreign address', async () => {
    const address = `${app.url}/sign-in?to=https%3A%2F%2Felsewhere.example%2F`;
    const { page } = await app.open(address, { session: 'none', refusals: [401, 403] });
    await signIn(page, 'ada@example.com', 'not the password');
    await page.getByRole('alert').first().waitFor();
    await signIn(page, 'ada@example.com', PASSWORD);
    await page.getByRole('navigation', { name: 'Main' }).waitFor();
    expect(page.url()).to.contain(`${app.url}/env/`);
  });

  test('remembers theme and language, and keeps the zone in the address', async () => {
    const { page } = await app.open('/plans');
    await choose(page, 'Dark');
    await page.locator('html[data-mantine-color-scheme=dark]').waitFor();
    await choose(page, 'Zone of this browser');
    await page.waitForURL(/zone=browser/);
    await choose(page, 'Deutsch');
    await page.getByRole('heading', { level: 1, name: 'Tarife' }).waitFor();
    await page.getByRole('link', { name: 'Rechnungen' }).click();
    await page.getByRole('heading', { level: 1, name: 'Rechnungen' }).waitFor();
    expect(page.url()).to.match(/\/invoices\?zone=browser$/);
    await page.reload();
    await page.locator('html[lang=de][data-mantine-color-scheme=dark]').waitFor();
    await page.getByText('Ortszeit · DE').waitFor();
  });

  test('says on every page which environment is open, and switches it', async () => {
    const { page } = await app.open('/');
    const session = await page.evaluate<{ environments: { id: string; name: string; type: string }[] }>(
      "fetch('/v1/auth/session').then((response) => response.json())",
    );
    const [first, second] = session.environments;
    const band = page.getByRole('region', { name: 'Environment' });
    await band.getByText(first!.type === 'production' ? 'customers are charged' : 'no customer is charged').waitFor();
    expect(second, 'a second environment').to.not.equal(undefined);
    await page.getByRole('button', { name: /^Switch the environment/ }).click();
    await page.getByRole('menuitem', { name: second!.name }).click();
    await page.waitForURL(new RegExp(`/env/${second!.id}`));
    await band
      .getByText(second!.type === 'production' ? /^customers are charged$/ : 'no customer is charged')
      .waitFor();
  });

  test('shows blocked actions with the reason to a role that may only read', async () => {
    const reader = { type: 'user', email: 'reader@example.com', roles: ['all_reader'] };
    const { password } = await app.send<{ password: string }>('POST', '/users', reader);
    const address = `${app.url}/env/${app.environment_id}/plans`;
    const { page } = await app.open(address, { session: 'none', refusals: [401] });
    await signIn(page, 'reader@example.com', password);
    const action = page.getByRole('button', { name: 'New plan…' });
    await action.waitFor();
    expect(await action.getAttribute('aria-disabled')).to.equal('true');
    await action.focus();
    await action.hover();
    await page.getByRole('tooltip', { name: 'Your role may not change plans.' }).waitFor();
    await action.click({ force: true });
    expect(page.url()).to.equal(address);
  });

  test('shows the JSON of a record, the call as curl, and its history with names', async () => {
    const { page } = await app.open(`/plans/${plan_id}?sheet=record`);
    await waitUntilShown(page);
    const json = await page.getByRole('region', { name: 'JSON' }).innerText();
    expect(JSON.parse(json)).to.include({ id: plan_id, name: 'Scale' });
    await page.getByRole('tab', { name: 'as curl' }).click();
    const curl = await page.getByRole('region', { name: 'as curl' }).innerText();
    expect(curl).to.contain(`${app.url}/v1/plans/${plan_id}`).and.contain(app.environment_id);
    await page.getByRole('tab', { name: 'History' }).click();
    await page.getByRole('tabpanel').locator('summary').getByText('created').waitFor();
  });

  test('works by keyboard: the skip link leads to the page, and its first action is the next stop', async () => {
    const { page } = await app.open('/plans');
    await waitUntilShown(page);
    await page.keyboard.press('Tab');
    const focused = () => page.evaluate<string>('document.activeElement.textContent.trim()');
    expect(await focused()).to.equal('Skip to the page');
    await page.keyboard.press('Enter');
    const seen: string[] = [];
    while (seen.length < 8 && seen.at(-1) !== 'New plan…') {
      await page.keyboard.press('Tab');
      seen.push(await focused());
    }
    expect(seen).to.include('New plan…');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'New plan' }).waitFor();
    await page.keyboard.press('Escape');
    await page.waitForURL(/\/plans$/);
    expect(await focused()).to.equal('New plan…');
  });

  const MISSING = [
    ['en-US', 'There is no such page', 'Go to Home', 'Search…', 'Search'],
    ['de-DE', 'Diese Seite gibt es nicht', 'Zur Startseite', 'Suchen…', 'Suche'],
  ] as const;
  for (const [locale, title, home, search, palette] of MISSING)
    test(`says that there is no such page, with ways on (${locale})`, async () => {
      const { page } = await app.open('/planets/mars', { locale });
      await page.getByRole('heading', { level: 1, name: title }).waitFor();
      expect(await page.title()).to.equal(`${title} · Farthing`);
      await page.getByText(`/env/${app.environment_id}/planets/mars`).waitFor();
      expect(await findViolations(page)).to.deep.equal([]);
      await page.getByRole('main').getByRole('button', { name: search }).click();
      await page.getByRole('dialog', { name: palette, exact: true }).waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('link', { name: home }).click();
      await page.waitForURL(new RegExp(`/env/${app.environment_id}`));
      for (const address of ['/nowhere', '/env/env_00000000000000000000000000/plans']) {
        const { page: alone } = await app.open(`${app.url}${address}`, { locale });
        await alone.getByRole('heading', { level: 1, name: title }).waitFor();
        expect(await findViolations(alone)).to.deep.equal([]);
      }
    });

  const RECORDS = [
    'customers/cust_',
    'invoices/inv_',
    'meters/meter_',
    'plans/plan_',
    'subscriptions/subs_',
    'wallets/wallet_',
    'webhooks/whep_',
  ];
  const NO_RECORD = [
    ['en-US', 'There is no such record here'],
    ['de-DE', 'Diesen Datensatz gibt es hier nicht'],
  ] as const;
  for (const [locale, title] of NO_RECORD)
    test(`names the id of a record that does not exist (${locale})`, async () => {
      const id = (path: string) => `${path}00000000000000000000000000`;
      const prices = `plans/${plan_id}/prices/price_`;
      for (const path of [...RECORDS, prices].map(id).concat(`${id('plans/plan_')}/prices/new`)) {
        const { page } = await app.open(`/${path}`, { locale, refusals: [404] });
        await page.getByRole('heading', { level: 1, name: title }).waitFor();
        await page
          .getByRole('alert')
          .getByText(/_0{26}/)
          .first()
          .waitFor();
        expect(await page.title(), path).to.equal(`${title} · Farthing`);
      }
    });

  test('follows the history before the page is shown, and loads the scripts of the page beside the session', async () => {
    const { page } = await app.open('/plans');
    await page.getByRole('heading', { level: 1, name: 'Plans' }).waitFor();
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Meters' }).click();
    await page.getByRole('heading', { level: 1, name: 'Meters' }).waitFor();
    let release = () => {};
    const isReleased = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route('**/v1/auth/session', async (route) => {
      await isReleased;
      await route.continue();
    });
    const script = page.waitForRequest(/\/assets\/meters-page-/);
    await page.reload({ waitUntil: 'commit' });
    await script;
    await page.goBack({ waitUntil: 'commit' });
    release();
    await page.getByRole('heading', { level: 1, name: 'Plans' }).waitFor();
    expect(new URL(page.url()).pathname).to.match(/\/plans$/);
  });

  for (const script of ['frame', 'react-dom'])
    it(`says that it could not be loaded without the script ${script}, after one reload, and can be loaded again`, async () => {
      const { page } = await app.open('/plans');
      await page.getByRole('heading', { level: 1, name: 'Plans' }).waitFor();
      let documents = 0;
      page.on('request', (request) => {
        if (request.isNavigationRequest()) documents++;
      });
      const lost = new RegExp(`/assets/${script}-.*\\.js`);
      await page.route(lost, (route) => route.abort());
      await page.reload({ waitUntil: 'commit' });
      const alert = page.getByRole('alert').filter({ hasText: 'The console could not be loaded.' });
      await alert.waitFor();
      expect(documents).to.equal(2);
      await page.unroute(lost);
      await alert.getByRole('link', { name: 'Try again' }).click();
      await page.getByRole('heading', { level: 1, name: 'Plans' }).waitFor();
      await app.closePages();
    });

  it('says that a page could not be loaded without its script, and can be loaded again', async () => {
    const { page } = await app.open('/plans');
    await waitUntilShown(page);
    const lost = /\/assets\/meters-page-.*\.js/;
    await page.route(lost, (route) => route.abort());
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Meters' }).click();
    const alert = page.getByRole('alert').filter({ hasText: 'This could not be loaded' });
    await alert.waitFor();
    await page.unroute(lost);
    await alert.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { level: 1, name: 'Meters' }).waitFor();
    await app.closePages();
  });

  test('a list is at the same position after a reload', async () => {
    for (let n = 0; n < 45; n++)
      await app.send('POST', '/customers', { external_id: `listed-${n}`, name: `Listed ${n}` });
    const { page } = await app.open('/customers');
    await waitUntilShown(page);
    const readPosition = () => page.evaluate<number>('scrollY');
    await page.evaluate('scrollTo(0, 600)');
    await until('the list is scrolled', async () => (await readPosition()) === 600);
    await page.reload();
    await waitUntilShown(page);
    await until('the position is restored', async () => (await readPosition()) === 600);
  });

  test('says why a select has no options', async () => {
    const { page } = await app.open('/wallets?sheet=new', { refusals: [403] });
    await waitUntilShown(page);
    const refusal = { status: 403, json: { code: 'permission_denied', message: 'customers may not be read' } };
    await page.route('**/v1/search?*', (route) => route.fulfill(refusal));
    await page.getByRole('combobox', { name: 'Customer' }).fill('northwind');
    await page.getByText('customers may not be read').waitFor();
  });

  test('shows a message without a further script, whose loss could take the page away', async () => {
    const email = 'grace@example.com';
    const user = { type: 'user', email, roles: ['all_reader'] };
    const { password } = await app.send<{ password: string }>('POST', '/users', user);
    const address = `${app.url}/env/${app.environment_id}/settings?tab=account`;
    const { page } = await app.open(address, { session: 'none', refusals: [401] });
    await signIn(page, email, password);
    const form = page.getByRole('form', { name: 'Password' });
    await form.waitFor();
    const lost: string[] = [];
    await page.route(/\/assets\/.*\.js/, (route) => {
      lost.push(route.request().url());
      return route.abort();
    });
    await form.getByRole('textbox', { name: 'Current password' }).fill(password);
    await form.getByRole('textbox', { name: 'New password' }).fill(PASSWORD);
    await form.getByRole('button', { name: 'Change password' }).click();
    await page.getByRole('alert').getByText('The password is changed.').waitFor();
    await form.waitFor();
    expect(lost).to.deep.equal([]);
  });

  test('shows all keys on ?, not while somebody types, and not after it is turned off', async () => {
    const { page } = await app.open('/customers');
    await waitUntilShown(page);
    const field = page.getByRole('searchbox', { name: 'Find a customer' });
    await field.press('?');
    expect(await field.inputValue()).to.equal('?');
    const dialogue = page.getByRole('dialog', { name: 'Keys' });
    expect(await dialogue.count()).to.equal(0);
    await field.clear();
    await field.blur();
    await page.keyboard.press('?');
    await dialogue.getByRole('row').nth(KEY_ROWS.length).waitFor();
    for (const { effect } of KEY_ROWS)
      await dialogue.getByRole('cell', { name: KEY_EFFECTS.en[effect].replaceAll('`', '') }).waitFor();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor({ state: 'attached' });
      expect(await findViolations(page), colorScheme).to.deep.equal([]);
    }
    await dialogue.getByLabel('? opens this list').uncheck();
    await page.keyboard.press('Escape');
    await dialogue.waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await choose(page, 'Keys…');
    await dialogue.getByLabel('? opens this list').check();
    await page.keyboard.press('Escape');
    await dialogue.waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await dialogue.waitFor();
    const { page: german } = await app.open('/plans', { locale: 'de-DE' });
    await waitUntilShown(german);
    await german.keyboard.press('?');
    await german.getByRole('dialog', { name: 'Tasten' }).getByText('öffnet die Zeile').waitFor();
  });
});
