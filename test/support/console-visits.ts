/** Every page and open sheet of the console in each theme and width: WCAG 2.2 AA, no horizontal scrolling, German, keyboard. */
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
} from './console.ts';
import { listPages } from './console-pages.ts';
import { PLACEHOLDERS, type SeededRecords, seedRecords } from './console-records.ts';
import { until } from './until.ts';

const THEMES: readonly Theme[] = ['light', 'dark'];
const WIDTHS = [1440, 1024, 390];
/** A window of 1280 pixels at 200 %, and the narrowest one; each in one theme, because colours do not depend on the width. */
const ZOOMED = { width: 640, height: 450, colorScheme: 'light' } as const;
const NARROWEST = { width: 320, height: 900, colorScheme: 'dark' } as const;
const FIT_MS = 3_000;

/** Number of test files that visit the pages, because parallel jobs take whole files. */
const FILES = 3;

/** Declares the tests of every third page, beginning with the one at `first`. */
export function declareVisits(first: number): void {
  describe(`every page of the console: part ${first + 1} of ${FILES}`, function () {
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
      if (at % FILES !== first) return;
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
}

/** Words that are the same in both languages, and names. */
const SAME = new Set([
  ...['Webhooks', 'Status', 'Name', 'Start', 'Definition', 'Filter', 'Team', 'Version', 'Credits'],
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
