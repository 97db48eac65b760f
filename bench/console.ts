/**
 * The console in Chromium (`/usr/bin/chromium`), on a service as `npm start` runs it, with a seeded company: its pages beside an empty React
 * page that is built and served likewise, a scroll through a long list, and the CPU of the service for an open page of live events.
 * `--rounds=5 --customers=100000 --scroll=10 --seconds=20 --pairs=3 --part=pages,list,live`.
 */
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { SECOND_MS } from '../core/foundation/time/durations.ts';
import { type Company, seedCompany } from '../test/support/company.ts';
import { launchChromium, signIn, waitForConsole } from '../test/support/signed-in.ts';
import { THIS_CHECKOUT } from './checkout.ts';
import { measurePage, measureScroll, type ShownPage, summarizePages } from './console-pages.ts';
import { startEmptyPage } from './empty-page.ts';
import { type OutsideService, startOutside } from './outside-service.ts';
import { pause } from './processes.ts';
import { check, claim, fixed, flag, median, say, textFlag } from './report.ts';

const RATIO_MUST = 3;
const TASK_MUST_MS = 100;
const SCRIPT_MUST_BYTES = 220 * 1024;
const LIVE_MUST = 0.01;
const RATES = [0, 200];
/** They warm up the browser, and the caches and the compiled code of the service. */
const WARM_UP_ROUNDS = 5;
const SEND_EACH_MS = 500;

type Visit = {
  readonly browser: Browser;
  readonly service: OutsideService;
  readonly company: Company;
  readonly storageState: BrowserContextOptions['storageState'];
};

export async function run(): Promise<void> {
  const parts = (textFlag('part') ?? 'pages,list,live').split(',');
  const service = await startOutside(THIS_CHECKOUT.root);
  const browser = await launchChromium();
  try {
    const company = await seedCompany(service, new Date());
    await waitForConsole(service.url);
    const context = await browser.newContext();
    await signIn(context, service);
    const visit = { browser, service, company, storageState: await context.storageState() };
    await context.close();
    if (parts.includes('pages')) await comparePages(visit);
    if (parts.includes('live')) await measureLivePage(visit);
    // The last one, because its customers would slow down the other parts.
    if (parts.includes('list')) await scrollLongList(visit);
  } finally {
    await browser.close();
    await service.stop();
  }
}

function toUrl({ service, company }: Visit, path: string): string {
  return `${service.url}/env/${company.environment_id}${path}`;
}

async function comparePages(visit: Visit): Promise<void> {
  const { browser, company, storageState } = visit;
  const empty = await startEmptyPage();
  try {
    const pages: Record<string, string> = {
      home: '',
      customers: '/customers',
      'invoice with thread': `/invoices/${company.invoice_id}?why=${company.line_id}`,
      usage: '/usage',
      events: '/events',
    };
    const shown = new Map<string, ShownPage[]>(['empty', ...Object.keys(pages)].map((name) => [name, []]));
    const rounds = flag('rounds', 5);
    for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
      const measured: [string, ShownPage][] = [['empty', await measurePage(browser, empty.url)]];
      for (const [name, path] of Object.entries(pages))
        measured.push([name, await measurePage(browser, toUrl(visit, path), storageState)]);
      if (round >= 0) for (const [name, page] of measured) shown.get(name)!.push(page);
    }
    const theirs = summarizePages(shown.get('empty')!);
    say(`  empty React page: ${formatPage(theirs)}`);
    for (const name of Object.keys(pages)) comparePage(name, summarizePages(shown.get(name)!), theirs);
  } finally {
    empty.stop();
  }
}

function comparePage(name: string, ours: ShownPage, theirs: ShownPage): void {
  say(`  ${name}: ${formatPage(ours)}`);
  for (const [measure, what] of [
    ['first_paint', 'first paint'],
    ['shown', 'heading and data'],
  ] as const) {
    const ratio = ours[measure] / theirs[measure];
    const measured = `${fixed(ours[measure], 0)} ÷ ${fixed(theirs[measure], 0)} ms = ${fixed(ratio, 2)}`;
    claim(`${name}, ${what} ÷ empty React page`, measured, `${RATIO_MUST}`, ratio <= RATIO_MUST);
  }
  const { longest_task, script_bytes } = ours;
  claim(`${name}, longest task`, `${fixed(longest_task, 0)} ms`, `${TASK_MUST_MS} ms`, longest_task <= TASK_MUST_MS);
  // The bound is that of the first page; the others load parts of their own.
  const kilobytes = `${fixed(script_bytes / 1024, 0)} KiB`;
  if (name === 'home')
    claim('home, scripts', kilobytes, `${SCRIPT_MUST_BYTES / 1024} KiB`, script_bytes <= SCRIPT_MUST_BYTES);
}

function formatPage({ first_paint, shown, longest_task, script_bytes }: ShownPage): string {
  return (
    `first paint ${fixed(first_paint, 0)} ms, heading and data ${fixed(shown, 0)} ms, ` +
    `longest task ${fixed(longest_task, 0)} ms, scripts ${fixed(script_bytes / 1024, 0)} KiB`
  );
}

async function scrollLongList(visit: Visit): Promise<void> {
  const { browser, service, company, storageState } = visit;
  const customers = flag('customers', 100_000);
  const sql = `insert into customers (id, tenant_id, environment_id, external_id, name)
    select 'cust_' || lpad(n::text, 26, '0'), c.tenant_id, c.environment_id, 'customer_' || n, 'Customer ' || n
      from generate_series(1, ${customers}) n, (select tenant_id, environment_id from customers where id = '${company.customer_id}') c`;
  await service.call({ what: 'postgres', sql });
  await service.call({ what: 'postgres', sql: 'vacuum analyze customers' });
  const scroll_ms = flag('scroll', 10) * SECOND_MS;
  const list = await measureScroll(browser, toUrl(visit, '/customers'), { storageState, scroll_ms });
  check(list.rows > 100, `the scroll reached row ${list.rows}`);
  say(
    `  list of ${customers} customers, scrolled to row ${list.rows}: ${list.frames} frames, median ${fixed(list.median_frame)} ms, ` +
      `longest ${fixed(list.longest_frame, 0)} ms`,
  );
  const measured = `${fixed(list.longest_task, 0)} ms`;
  claim('list, longest task of the scroll', measured, `${TASK_MUST_MS} ms`, list.longest_task <= TASK_MUST_MS);
}

/** CPU with the page open minus CPU without it, in interleaved pairs. */
async function measureLivePage(visit: Visit): Promise<void> {
  const { browser, storageState } = visit;
  const pairs = flag('pairs', 3);
  for (const rate of RATES) {
    const differences = { service: [] as number[], stores: [] as number[] };
    for (let pair = 0; pair < pairs; pair++) {
      const without = await measureCores(visit, rate);
      const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, storageState });
      const page = await context.newPage();
      await page.goto(toUrl(visit, '/events'));
      await page.locator('main h1').first().waitFor();
      // The first answers are those of any page.
      await pause(2 * SECOND_MS);
      const open = await measureCores(visit, rate);
      await context.close();
      differences.service.push(open.service - without.service);
      differences.stores.push(open.stores - without.stores);
    }
    const [node, stores] = [median(differences.service), median(differences.stores)];
    const percent = (cores: number) => `${fixed(cores * 100, 2)} %`;
    const measured = `${percent(node)} of a core, stores ${percent(stores)}`;
    claim(`a live page at ${rate} events/s, CPU of the service`, measured, percent(LIVE_MUST), node < LIVE_MUST);
  }
}

/** Mean cores of the service process and of its stores, while events arrive. */
async function measureCores({ service, company }: Visit, rate: number): Promise<{ service: number; stores: number }> {
  const seconds = flag('seconds', 20);
  const read = () => {
    const { total, clickhouse, postgres } = service.cpu();
    return { at: performance.now(), stores: clickhouse + postgres, service: total - clickhouse - postgres };
  };
  const before = read();
  const end = before.at + seconds * SECOND_MS;
  for (let next = before.at; next < end; next += SEND_EACH_MS) {
    if (rate > 0) await company.sendNow((rate * SEND_EACH_MS) / SECOND_MS);
    await pause(Math.max(0, next + SEND_EACH_MS - performance.now()));
  }
  const after = read();
  const elapsed = (after.at - before.at) / SECOND_MS;
  return { service: (after.service - before.service) / elapsed, stores: (after.stores - before.stores) / elapsed };
}
