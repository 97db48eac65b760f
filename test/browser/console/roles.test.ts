/**
 * Every page and open sheet of the console for users whose roles allow less. A reader sees all of them, with the reasons that block changes. A
 * user without a role sees one page with that reason.
 */
import { expect } from 'chai';
import type { Locator, Page } from 'playwright-core';
import {
  type ConsoleApp,
  declareTests,
  findViolations,
  type SavedSession,
  startConsole,
  waitUntilShown,
} from '../../support/console.ts';
import { listPages } from '../../support/console-pages.ts';
import { PLACEHOLDERS, type SeededRecords, seedRecords } from '../../support/console-records.ts';
import { until } from '../../support/until.ts';

/** Reasons that name the role. */
const REASON = /^(Your role may not|Only a super admin)/;
/** Buttons that open something to read, or a form whose own action is blocked. */
const OPENS = new Set(['Choose a picture…', 'New customer…', 'Show preview PDF']);
/** Users may always change their own name and password. */
const OWN_PAGE = '/settings?tab=account';
/** Time in which a tooltip appears. */
const REASON_MS = 2_000;
const ACTION = 'main button, [role=dialog] button';

describe('a person whose role', function () {
  this.timeout(240_000);
  let app: ConsoleApp;
  let records: SeededRecords;
  let reader: SavedSession;
  before(async () => {
    app = await startConsole();
    records = await seedRecords(app);
    reader = await signInAs(app, { email: 'reader@example.com', roles: ['all_reader'] });
  });
  after(() => app?.stop());
  const test = declareTests(() => app);

  const open = async (at: number) => {
    const opened = await app.open(listPages(records)[at]!, {
      environment_id: records.environment_id,
      session: reader,
    });
    await waitUntilShown(opened.page);
    return opened.page;
  };

  describe('may read', () => {
    // The titles of the tests exist before the records.
    listPages(PLACEHOLDERS).forEach((path, at) => {
      test(`finds each change of ${path} blocked, with the reason`, async () => {
        const page = await open(at);
        if (path !== OWN_PAGE) {
          expect(await readTexts(page.locator('button[type=submit]')), 'may be sent').to.deep.equal([]);
          const enabled = await readTexts(page.locator(ACTION).and(page.locator(':not([aria-disabled=true])')));
          const dialogues = enabled.filter((text) => text.endsWith('…') && !OPENS.has(text));
          expect(dialogues, 'can be opened').to.deep.equal([]);
          expect(await findWrongReasons(page)).to.deep.equal([]);
        }
        expect(await readTexts(page.locator('.mantine-Notification-root'))).to.deep.equal([]);
      });
    });

    test('finds the changes in menus blocked, too', async () => {
      for (const path of [
        `/customers/${records.customer_id}`,
        `/plans/${records.plan_id}`,
        `/wallets/${records.wallet_id}`,
        `/subscriptions/${records.subscription_id}`,
      ]) {
        const { page } = await app.open(path, { environment_id: records.environment_id, session: reader });
        await waitUntilShown(page);
        await page.locator('main').getByRole('button', { name: 'More' }).click();
        await page.getByRole('menu').waitFor();
        const items = await readTexts(page.locator('[role=menuitem]:not([data-disabled])'));
        expect(items, path).to.have.length(1);
        expect(items[0]).to.be.oneOf(['Record', 'JSON, curl, history']);
      }
    });

    test('may change the own password, and stays signed in', async () => {
      const session = await signInAs(app, { email: 'other@example.com', roles: ['all_reader'] });
      const { page } = await app.open(OWN_PAGE, { environment_id: records.environment_id, session });
      await page.getByRole('textbox', { name: 'Current password' }).fill(passwords.get('other@example.com')!);
      await page.getByRole('textbox', { name: 'New password' }).fill('another long password');
      await page.getByRole('button', { name: 'Change password' }).click();
      await page.getByText('The password is changed. Other browsers are signed out.').waitFor();
      await page.reload();
      await page.getByRole('heading', { name: 'Your account' }).or(page.getByText('Signed in')).first().waitFor();
    });
  });

  describe('may read nothing', () => {
    let nobody: SavedSession;
    before(async () => {
      nobody = await signInAs(app, { email: 'nobody@example.com', roles: [] });
    });

    // The pages have one state, so each area is opened once.
    const areas = [...new Set(listPages(PLACEHOLDERS).map((path) => path.split('?')[0]!))];
    for (const area of areas)
      test(`reads that at ${area}`, async () => {
        const path = listPages(records)[listPages(PLACEHOLDERS).findIndex((one) => one.split('?')[0] === area)]!;
        const { page } = await app.open(path, { environment_id: records.environment_id, session: nobody });
        await page.getByRole('heading', { level: 1, name: 'Your role may not see this' }).waitFor();
        await page.getByText('nobody@example.com').waitFor();
        expect(await page.title()).to.equal('Your role may not see this · Farthing');
      });

    test('can sign out, in both themes and languages', async () => {
      const { page } = await app.open('/', { session: nobody, locale: 'de-DE', refusals: [401] });
      await page.getByRole('heading', { name: 'Ihre Rolle darf das nicht sehen' }).waitFor();
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor({ state: 'attached' });
        expect(await findViolations(page)).to.deep.equal([]);
      }
      await page.getByRole('button', { name: 'Abmelden' }).click();
      await page.getByRole('heading', { name: 'Anmelden' }).waitFor();
    });
  });
});

const passwords = new Map<string, string>();

/** Makes a user, and signs in with the password that was shown once. A user is made with a role; `roles` then replace it. */
async function signInAs(
  app: ConsoleApp,
  { email, roles }: { email: string; roles: readonly string[] },
): Promise<SavedSession> {
  const made = { type: 'user', email, roles: ['all_reader'] };
  const { id, password } = await app.send<{ id: string; password: string }>('POST', '/users', made);
  passwords.set(email, password);
  const { page, context } = await app.open(`${app.url}/sign-in`, { session: 'none', refusals: [401] });
  await page.getByLabel('E-mail').fill(email);
  await page.getByRole('textbox', { name: 'Password' }).fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Main' }).waitFor();
  const state = await context.storageState();
  await app.closePages();
  if (roles.length === 0) await app.send('PUT', `/users/${id}/roles`, { roles });
  return { ...state, origins: [] };
}

/** The visible words of elements, without those that tools of a browser read out. */
async function readTexts(elements: Locator): Promise<string[]> {
  const texts = await elements.allInnerTexts();
  return texts.map((text) => text.replaceAll(/\s+/g, ' ').trim()).filter((text) => text !== '');
}

/** Blocked actions whose reason is not the role, after they have the focus. */
async function findWrongReasons(page: Page): Promise<string[]> {
  const wrong: string[] = [];
  for (const button of await page.locator(ACTION).and(page.locator('[aria-disabled=true]')).all()) {
    if (!(await button.isVisible())) continue;
    const reason = await readReason(page, button);
    if (!REASON.test(reason)) wrong.push(`${await button.innerText()}: ${reason}`);
  }
  return wrong;
}

/** The reason of a blocked action. A side sheet that opens meanwhile takes the focus, which is then given again. */
async function readReason(page: Page, button: Locator): Promise<string> {
  const tooltip = page.getByRole('tooltip');
  let reason: string | null = null;
  await until('the reason is shown', async () => {
    await button.focus();
    reason = await tooltip.innerText({ timeout: REASON_MS }).catch(() => null);
    return reason !== null;
  });
  await button.blur();
  await tooltip.waitFor({ state: 'detached' });
  return (reason ?? '').trim();
}
