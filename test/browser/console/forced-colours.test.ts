/** The console in forced colours, which paint neither backgrounds nor shadows. */
import { expect } from 'chai';
import type { Locator } from 'playwright-core';
import {
  type ConsoleApp,
  declareTests,
  findViolations,
  startConsole,
  type Theme,
  waitUntilShown,
} from '../../support/console.ts';
import { type SeededRecords, seedRecords } from '../../support/console-records.ts';

const THEMES: readonly Theme[] = ['light', 'dark'];

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
