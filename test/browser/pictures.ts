/**
 * Takes the pictures of the README: `node --import ./process/typescript.mjs test/browser/pictures.ts [name …]`. Starts a service of its own
 * with a company, and writes docs/pictures/*.png. Needs `chromium` (Debian's package).
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { startOutside } from '../../bench/outside-service.ts';
import { ROOT } from '../../process/console-files.ts';
import { type Company, seedCompany } from '../support/company.ts';
import { launchChromium, signIn, waitForConsole } from '../support/signed-in.ts';
import { shrinkPng } from './shrink-png.ts';

const SIZE = { width: 1440, height: 900 };
const ACTION_MS = 30_000;
const COUNTED_MS = 120_000;
/** Hides the caret, which blinks. */
const STILL = 'document.activeElement instanceof HTMLElement && document.activeElement.blur()';

type Picture = {
  readonly name: string;
  readonly theme?: 'dark';
  path(company: Company): Promise<string> | string;
  /** Work in the page before the picture is taken. */
  prepare?(page: Page, company: Company): Promise<void>;
};

const PICTURES: readonly Picture[] = [
  { name: 'home', path: () => '' },
  {
    name: 'events',
    path: async (company) => {
      const sent = await company.sendNow(40);
      const own = sent.filter(({ external_customer_id }) => external_customer_id === 'northwind');
      return `/events?event=${own.at(-1)!.event_id}`;
    },
    // The events that arrive while the page is open fill its list.
    prepare: async (page, company) => {
      await page.getByText('Next invoice').first().waitFor();
      await page.getByText('being counted').first().waitFor({ state: 'detached', timeout: COUNTED_MS });
      for (let second = 0; second < 8; second++) {
        await company.sendNow(3);
        await page.waitForTimeout(1_000);
      }
    },
  },
  { name: 'price', path: ({ scale }) => `/plans/${scale.plan_id}/prices/${scale.tiered_price_id}` },
  { name: 'invoice', path: ({ invoice_id, line_id }) => `/invoices/${invoice_id}?why=${line_id}` },
  { name: 'usage', theme: 'dark', path: ({ input_meter_id }) => `/usage?meter=${input_meter_id}&compare=before` },
];

async function takePictures(wanted: readonly Picture[]): Promise<void> {
  const service = await startOutside(ROOT);
  const browser = await launchChromium();
  try {
    const company = await seedCompany(service, new Date());
    process.stdout.write(`the company is there after ${Math.round(performance.now() / 1_000)} s\n`);
    await waitForConsole(service.url);
    const signedIn = await browser.newContext();
    await signIn(signedIn, service);
    const storageState = await signedIn.storageState();
    for (const picture of wanted) {
      const context = await browser.newContext({
        ...{ viewport: SIZE, locale: 'en-US', timezoneId: 'UTC', reducedMotion: 'reduce', storageState },
        colorScheme: picture.theme ?? 'light',
      });
      context.setDefaultTimeout(ACTION_MS);
      const page = await context.newPage();
      page.on('pageerror', ({ message }) => process.stderr.write(`${picture.name}: ${message}\n`));
      await page.goto(`${service.url}/env/${company.environment_id}${await picture.path(company)}`);
      await page.locator('main h1').first().waitFor();
      await picture.prepare?.(page, company);
      await page.getByRole('status', { name: 'Loading' }).first().waitFor({ state: 'detached' });
      // A page that is live never becomes idle, so its requests have this time.
      await page.waitForTimeout(2_000);
      await page.evaluate(STILL);
      const png = shrinkPng(await page.screenshot());
      writeFileSync(join(ROOT, 'docs', 'pictures', `${picture.name}.png`), png);
      process.stdout.write(`${picture.name}.png ${Math.round(png.length / 1024)} KB\n`);
      await context.close();
    }
  } finally {
    await browser.close();
    await service.stop();
  }
}

const names = process.argv.slice(2);
await takePictures(PICTURES.filter(({ name }) => names.length === 0 || names.includes(name)));
