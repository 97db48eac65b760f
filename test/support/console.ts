/**
 * A whole service with its console, and pages of a real browser that fail on every error: `const app = await startConsole()`, then `const
 * { page } = await app.open('/invoices')`. Needs `chromium` (Debian's package).
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import type { SomeAnswer } from './answers.ts';
import { CONSOLE_HEADERS } from './browser.ts';
import { type ServiceProcess, startServiceProcess, temporaryDirectory } from './service.ts';
import { until } from './until.ts';

/** The first build of the console takes some seconds; a busy machine needs more. */
const BUILD_MS = 180_000;
/** Maximum wait for an element. A loaded machine with two cores needs several seconds for the first page. */
const ACTION_MS = 20_000;

export type Theme = 'light' | 'dark';
export type PageOptions = {
  width?: number;
  theme?: Theme;
  /** Language of the browser. */
  locale?: string;
  /** Environment of the address; by default the first one. */
  environment_id?: string;
  /** Cookies of the context; by default those of the person who opened the one-time link. */
  session?: 'link' | 'none' | SavedSession;
  /** Statuses of refused requests that the test expects, such as 401 without a session. */
  refusals?: readonly number[];
};
export type SavedSession = Exclude<BrowserContextOptions['storageState'], string | undefined>;
export type OpenedPage = { readonly page: Page; readonly context: BrowserContext; readonly faults: readonly string[] };

export type ConsoleApp = {
  readonly url: string;
  /** The address of the one-time link. */
  readonly link: string;
  readonly service: ServiceProcess;
  readonly browser: Browser;
  /** The first environment of the tenant. */
  readonly environment_id: string;
  /** Opens a page of the environment, or an address that begins with the URL of the service. */
  open(path: string, options?: PageOptions): Promise<OpenedPage>;
  /** Sends a request to the first environment with the API key, to another one with the session of the link. Throws if it is refused. */
  send<Body = SomeAnswer>(method: string, path: string, body?: unknown, environment_id?: string): Promise<Body>;
  /** Closes all pages, and returns the faults that they have had. */
  closePages(): Promise<string[]>;
  stop(): Promise<void>;
};

export async function startConsole(): Promise<ConsoleApp> {
  const directory = temporaryDirectory();
  const service = await startServiceProcess({ DATA_DIR: join(directory.path, 'data') });
  const { url } = service;
  try {
    await until('the console is built', () => isBuilt(url), BUILD_MS, 200);
  } catch (error) {
    await service.stop();
    throw error;
  }
  const link = /^console {4}(\S+)/m.exec(service.stdout())![1]!;
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  const { environments } = (await service.request<Environments>('GET', '/environments')).body;
  const environment_id = environments[0]!.id;
  let opened: OpenedPage[] = [];
  let linked: Promise<SavedSession> | undefined;

  const openPage = async (address: string, options: PageOptions, storageState: SavedSession | undefined) => {
    const { width = 1440, theme = 'light', locale = 'en-US', refusals = [] } = options;
    const context = await browser.newContext({
      viewport: { width, height: 900 },
      colorScheme: theme,
      locale,
      reducedMotion: 'reduce',
      timezoneId: 'Europe/Berlin',
      ...(storageState === undefined ? {} : { storageState }),
    });
    context.setDefaultTimeout(ACTION_MS);
    const page = await context.newPage();
    const faults: string[] = [];
    guardPage(page, url, refusals, faults);
    await page.addInitScript({ content: REPORT_VIOLATIONS });
    opened.push({ page, context, faults });
    await page.goto(address);
    return { page, context, faults };
  };
  const signInByLink = async () => {
    const { page, context } = await openPage(link, { refusals: [401] }, undefined);
    await page.getByRole('main').waitFor();
    const state = await context.storageState();
    // Nothing but the cookie, so that each page decides by itself on language and environment.
    return { ...state, origins: [] };
  };
  const readLinkSession = () => {
    linked ??= signInByLink();
    return linked;
  };
  const app: ConsoleApp = {
    url,
    link,
    service,
    browser,
    environment_id,
    open: async (path, options = {}) => {
      const { session = 'link' } = options;
      const state = session === 'none' ? undefined : session === 'link' ? await readLinkSession() : session;
      const address = path.startsWith(url) ? path : `${url}/env/${options.environment_id ?? environment_id}${path}`;
      return openPage(address, options, state);
    },
    send: async <Body>(method: string, path: string, body?: unknown, environment?: string) => {
      // The key is that of one environment; the session of the link reaches all.
      const headers: Record<string, string> = environment === undefined ? { 'x-api-key': service.api_key } : {};
      if (environment !== undefined) {
        Object.assign(headers, CONSOLE_HEADERS, { 'x-environment-id': environment });
        headers['cookie'] = formatCookies(await readLinkSession());
      }
      const response = await fetch(`${url}/v1${path}`, {
        method,
        headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
      return (text === '' ? null : JSON.parse(text)) as Body;
    },
    closePages: async () => {
      const closed = opened;
      opened = [];
      for (const { context } of closed) await context.close();
      return closed.flatMap(({ faults }) => faults);
    },
    stop: async () => {
      await browser.close();
      await service.stop();
      directory.remove();
    },
  };
  return app;
}

/** Declares tests whose pages must have no fault: an error, a violated policy, a request to another host, a refused request. */
export function declareTests(app: () => ConsoleApp): (title: string, run: () => Promise<void>) => void {
  return (title, run) => {
    it(title, async () => {
      try {
        await run();
      } catch (error) {
        const faults = await app().closePages();
        if (faults.length > 0 && error instanceof Error) error.message += `\nFaults of the page:\n${faults.join('\n')}`;
        throw error;
      }
      const faults = await app().closePages();
      expect(faults, faults.join('\n')).to.deep.equal([]);
    });
  };
}

type Environments = { environments: { id: string }[] };

function formatCookies({ cookies }: SavedSession): string {
  return cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
}

async function isBuilt(url: string): Promise<boolean> {
  const response = await fetch(url, { headers: { accept: 'text/html' } });
  const text = await response.text();
  return response.status === 200 && text.includes('id="root"');
}

function guardPage(page: Page, url: string, refusals: readonly number[], faults: string[]): void {
  const at = () => page.url().replace(url, '');
  page.on('pageerror', ({ message }) => faults.push(`${at()}: ${message}`));
  page.on('console', (message) => {
    // A refused request is counted by its response.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      faults.push(`${at()}: ${message.text()}`);
  });
  page.on('request', (request) => {
    const address = request.url();
    const isOwn = address.startsWith(`${url}/`) || /^(data|blob):/.test(address);
    if (!isOwn) faults.push(`${at()}: a request to ${address}`);
  });
  page.on('response', (response) => {
    const status = response.status();
    if (status >= 400 && !refusals.includes(status))
      faults.push(`${at()}: ${status} of ${response.request().method()} ${response.url().replace(url, '')}`);
  });
}

// Code that runs in the page is text here, because its types would come with those of a browser for all tests.
const REPORT_VIOLATIONS = `document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  console.error('policy violated: ' + violatedDirective + ' by ' + blockedURI))`;
const LOADING = '[role=status][aria-label="Loading"], [role=status][aria-label="Wird geladen"]';

/** Waits until the page has its heading and nothing of it is being loaded. */
export async function waitUntilShown(page: Page): Promise<void> {
  await page.locator('main h1').first().waitFor();
  await page.locator(LOADING).first().waitFor({ state: 'detached' });
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const RUN_AXE = `axe
  .run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'], resultTypes: ['violations'] })
  .then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ target, any, all, none }) =>
    id + ': ' + target.join(' ') + ': ' + [...any, ...all, ...none][0]?.message)))`;

/** Violations of WCAG 2.2 AA, one text each. The script of axe is evaluated by the debugger, which the policy does not restrict. */
export async function findViolations(page: Page): Promise<string[]> {
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(AXE);
  return page.evaluate<string[]>(RUN_AXE);
}

/** Pixels by which the page is wider than its window. */
export function measureOverflow(page: Page): Promise<number> {
  return page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
}
