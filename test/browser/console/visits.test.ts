/** Every page and open sheet of the console in each theme and width: WCAG 2.2 AA, no horizontal scrolling, German, keyboard. */
import { expect } from 'chai';
import type { Locator, Page } from 'playwright-core';
import {
  type ConsoleApp,
  declareTests,
  findViolations,
  measureOverflow,
  startConsole,
  type Theme,
  waitUntilShown,
} from '../../support/console.ts';
import { listPages } from '../../support/console-pages.ts';
import { PLACEHOLDERS, type SeededRecords, seedRecords } from '../../support/console-records.ts';
import { until } from '../../support/until.ts';

const THEMES: readonly Theme[] = ['light', 'dark'];
const WIDTHS = [1440, 1024, 390];
/** A window of 1280 pixels at 200 %, and the narrowest one; each in one theme, because colours do not depend on the width. */
const ZOOMED = { width: 640, height: 450, colorScheme: 'light' } as const;
const NARROWEST = { width: 320, height: 900, colorScheme: 'dark' } as const;
const FIT_MS = 3_000;
describe('every page of the console', function () {
  this.timeout(240_000);
  let app: ConsoleApp;
  let records: SeededRecords;
  before(async () => {
    app = await startConsole();
    records = await seedRecords(app);
  });
  after(() => app?.stop());
  const test = declareTests(() => app);

  const open = async (at: number, options = {}) => {
    const opened = await app.open(listPages(records)[at]!, { environment_id: records.environment_id, ...options });
    await waitUntilShown(opened.page);
    return opened;
  };

  // The titles of the tests are known before the records are.
  listPages(PLACEHOLDERS).forEach((path, at) => {
    test(`${path} is accessible and fits, in both themes and all widths, and speaks German`, async () => {
      const { page } = await open(at);
      const faults: string[] = [];
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 900 });
        for (const colorScheme of THEMES) {
          await page.emulateMedia({ colorScheme });
          await waitForScheme(page, colorScheme);
          const found = await findViolations(page);
          faults.push(...found.map((violation) => `${width} ${colorScheme}: ${violation}`));
        }
        faults.push(...(await findOverflow(page, width)));
      }
      for (const { width, height, colorScheme } of [ZOOMED, NARROWEST]) {
        await page.setViewportSize({ width, height });
        await page.emulateMedia({ colorScheme });
        await waitForScheme(page, colorScheme);
        faults.push(...(await findOverflow(page, width)));
        faults.push(...(await findViolations(page)).map((violation) => `${width} ${colorScheme}: ${violation}`));
      }
      expect(faults, faults.join('\n')).to.deep.equal([]);
      const english = await readLabels(page);
      const german = await open(at, { locale: 'de-DE' });
      expect(await german.page.locator('html').getAttribute('lang')).to.equal('de');
      const same = (await readLabels(german.page)).filter((label) => english.includes(label) && !SAME.has(label));
      expect(same, `not translated: ${same.join(', ')}`).to.deep.equal([]);
    });
  });
});

/** Forced colours paint neither backgrounds nor shadows. */
describe('the console in forced colours', function () {
  this.timeout(240_000);
  let app: ConsoleApp;
  let records: SeededRecords;
  before(async () => {
    app = await startConsole();
    records = await seedRecords(app);
  });
  after(() => app?.stop());
  const test = declareTests(() => app);

  const open = async (path: string, colorScheme: Theme) => {
    const { page } = await app.open(path, { environment_id: records.environment_id, theme: colorScheme });
    await page.emulateMedia({ forcedColors: 'active', colorScheme });
    await waitUntilShown(page);
    await page.waitForLoadState('networkidle');
    return page;
  };

  for (const theme of THEMES) {
    test(`chips, the chosen filter and the focus are visible (${theme})`, async () => {
      const page = await open('/invoices', theme);
      const chip = await readStyle(page.getByText(/^Overdue \d+ days$/).first());
      expect(chip.outline).to.match(/^rgb.* solid 1px$/);
      expect(chip.ink).to.not.equal(chip.ground);
      const tabs = page.getByRole('navigation').getByRole('link', { name: /^(All|Drafts)/ });
      const [chosen, other] = [await readStyle(tabs.first()), await readStyle(tabs.nth(1))];
      expect(chosen.outline).to.match(/^rgb.* solid 2px$/);
      expect(other.outline).to.include('none');
      expect(other.border).to.equal('0px');
      await page.keyboard.press('Tab');
      const focused = await readStyle(page.locator(':focus-visible'));
      expect(focused.outline).to.match(/^rgb.* solid 3px$/);
      const row = page.getByRole('row').nth(1);
      await row.focus();
      expect((await readStyle(page.locator(':focus'))).outline).to.match(/ solid /);
      expect(await findViolations(page)).to.deep.equal([]);
    });

    test(`a choice, a share and the environment are visible (${theme})`, async () => {
      const page = await open(`/usage?meter=${records.meter_id}&split=customer`, theme);
      const [checked, unchecked] = [
        await readStyle(page.locator('input[type=radio]:checked + span').first()),
        await readStyle(page.locator('input[type=radio]:not(:checked) + span').first()),
      ];
      expect(checked.ground).to.not.equal(unchecked.ground);
      expect(checked.ink).to.not.equal(checked.ground);
      const { ground } = await readStyle(page.locator('body'));
      expect((await readStyle(page.locator('[role=table] i').first())).ground).to.not.equal(ground);
      const band = await readStyle(page.getByText('no customer is charged'));
      expect(band.ink).to.not.equal(band.ground);
      expect(await findViolations(page)).to.deep.equal([]);
    });

    test(`the button of a form and its marked options are visible (${theme})`, async () => {
      const { customer_id, plan_id } = records;
      const terms = encodeURIComponent('["payer"]');
      const page = await open(`/subscriptions/new?customer=${customer_id}&plan=${plan_id}&terms=${terms}`, theme);
      const button = await readStyle(page.getByRole('button', { name: 'Create subscription' }));
      expect(button.ink).to.not.equal(button.ground);
      const radio = page.getByRole('radio', { name: 'The customer', exact: true });
      const [marked, open_radio] = [
        await readStyle(radio),
        await readStyle(page.getByRole('radio', { name: 'Another customer, who gets the invoices' })),
      ];
      expect(marked.ground).to.not.equal(open_radio.ground);
      expect(await findViolations(page)).to.deep.equal([]);
    });
  }
});

type ShownStyle = { ink: string; ground: string; outline: string; border: string };

type StyledElement = { parentElement: StyledElement | null };
type ElementStyle = Record<
  'color' | 'backgroundColor' | 'outlineColor' | 'outlineStyle' | 'outlineWidth' | 'borderBottomWidth',
  string
>;
type StyleWindow = { getComputedStyle: (element: StyledElement) => ElementStyle };

/** Painted colours of an element. Its background is that of the first ancestor with one. */
function readStyle(locator: Locator): Promise<ShownStyle> {
  return locator.evaluate<ShownStyle, StyledElement>((element) => {
    const { getComputedStyle } = globalThis as unknown as StyleWindow;
    const isClear = (each: StyledElement) => /^rgba\(.*, 0\)$/.test(getComputedStyle(each).backgroundColor);
    const own = getComputedStyle(element);
    let at = element;
    while (at.parentElement && isClear(at)) at = at.parentElement;
    return {
      ink: own.color,
      ground: getComputedStyle(at).backgroundColor,
      outline: `${own.outlineColor} ${own.outlineStyle} ${own.outlineWidth}`,
      border: own.borderBottomWidth,
    };
  });
}

/** Words that are the same in both languages, and names. */
const SAME = new Set([
  ...[
    'Webhooks',
    'Status',
    'Name',
    'Start',
    'Definition',
    'Filter',
    'Team',
    'Version',
    'Credits',
    'Logo',
    'Letter',
    'Person',
  ],
  ...['Logo', 'Letter', 'Person', 'Super admin', 'Writer', 'Reader'],
  ...['esc', 'curl', 'TypeScript', 'Python', 'OpenTelemetry', 'Platform fee'],
]);

async function findOverflow(page: Page, width: number): Promise<string[]> {
  // A chart takes its new width when its observer has run.
  const isNarrow = () => measureOverflow(page).then((pixels) => pixels <= 0);
  await until('the page fits', isNarrow, FIT_MS).catch(() => undefined);
  const overflow = await measureOverflow(page);
  return overflow > 0 ? [`${width}: ${overflow} px too wide`] : [];
}

function waitForScheme(page: Page, scheme: Theme): Promise<void> {
  return page.locator(`html[data-mantine-color-scheme=${scheme}]`).waitFor({ state: 'attached' });
}

/** The words of headings, buttons, links, labels and columns, without names of records, ids, code, figures and codes such as USD. */
function readLabels(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    const found = new Set();
    for (const each of document.querySelectorAll('h1, h2, h3, button, a, label, legend, th, dt, [role=columnheader], [role=tab]')) {
      const copy = each.cloneNode(true);
      for (const name of copy.querySelectorAll('bdi, code, pre, .mono, kbd, time, [lang], [data-why]')) name.remove();
      if (each.closest('bdi, code, pre, .mono, time, details, th[scope=row], [lang]:not(html), [data-why]')) continue;
      const text = copy.textContent.replace(/[^\\p{L} ]+/gu, ' ').replace(/ +/g, ' ').trim();
      if (/\\p{Ll}{3}/u.test(text)) found.add(text);
    }
    return [...found];
  })()`);
}
