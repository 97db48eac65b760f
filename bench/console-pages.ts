/** Measures pages in Chromium: until they are shown, their longest task, the bytes of their scripts, and the frames of a scroll. */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { median } from './report.ts';

export type ShownPage = {
  /** Milliseconds from the navigation. */
  readonly first_paint: number;
  /** The heading and its data stand. */
  readonly shown: number;
  readonly longest_task: number;
  /** Bytes of the scripts as they were sent. */
  readonly script_bytes: number;
};

type StorageState = BrowserContextOptions['storageState'];

const WITHIN_MS = 60_000;
/** Tasks that the first data cause end in this time. */
const AFTER_MS = 500;
const SETTLE_MS = 500;

// Code that runs in the page is text here, because its types would come with those of a browser for the whole benchmark.
const WATCH = `
  globalThis.bench = { tasks: [], paint: null, shown: null };
  new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => bench.tasks.push(duration)))
    .observe({ type: 'longtask', buffered: true });
  new PerformanceObserver((list) => list.getEntriesByName('first-contentful-paint').forEach(({ startTime }) => (bench.paint = startTime)))
    .observe({ type: 'paint', buffered: true });
  const watch = () => {
    const isShown = document.querySelector('main h1') !== null && document.querySelector('main [role=status][aria-label=Loading]') === null;
    if (isShown) bench.shown = performance.now();
    else requestAnimationFrame(watch);
  };
  requestAnimationFrame(watch);
`;
const READ = `({ first_paint: bench.paint, shown: bench.shown, longest_task: Math.max(0, ...bench.tasks) })`;

/** Opens the page in a new context, in which nothing is cached. */
export async function measurePage(browser: Browser, url: string, storageState?: StorageState): Promise<ShownPage> {
  const context = await browser.newContext({
    ...{ viewport: { width: 1440, height: 900 }, locale: 'en-US', reducedMotion: 'reduce' },
    ...(storageState === undefined ? {} : { storageState }),
  });
  try {
    const page = await context.newPage();
    await page.addInitScript({ content: WATCH });
    // Chromium is starting the process of this page and ending that of the page before, which would be measured too.
    await page.waitForTimeout(SETTLE_MS);
    const scripts: Promise<number>[] = [];
    page.on('requestfinished', (request) => {
      if (request.url().endsWith('.js')) scripts.push(request.sizes().then(({ responseBodySize }) => responseBodySize));
    });
    await page.goto(url);
    const times = await waitForTimes(page);
    await page.waitForTimeout(AFTER_MS);
    const { longest_task } = await readTimes(page);
    const bytes = await Promise.all(scripts);
    return { ...times, longest_task, script_bytes: bytes.reduce((sum, size) => sum + size, 0) };
  } finally {
    await context.close();
  }
}

type Times = { first_paint: number; shown: number; longest_task: number };

async function waitForTimes(page: Page): Promise<Times> {
  const deadline = performance.now() + WITHIN_MS;
  for (;;) {
    const times = await readTimes(page);
    if (times.first_paint !== null && times.shown !== null) return times;
    if (performance.now() > deadline) throw new Error(`${page.url()} was not shown`);
    await page.waitForTimeout(50);
  }
}

function readTimes(page: Page): Promise<Times> {
  return page.evaluate<Times>(READ);
}

/** The middle of each measure. */
export function summarizePages(pages: readonly ShownPage[]): ShownPage {
  const middle = (read: (page: ShownPage) => number) => median(pages.map(read));
  return {
    first_paint: middle(({ first_paint }) => first_paint),
    shown: middle(({ shown }) => shown),
    longest_task: middle(({ longest_task }) => longest_task),
    script_bytes: middle(({ script_bytes }) => script_bytes),
  };
}

export type Scrolled = {
  readonly frames: number;
  readonly median_frame: number;
  readonly longest_frame: number;
  readonly longest_task: number;
  readonly rows: number;
};

const WATCH_FRAMES = `
  globalThis.scrolled = { frames: [], last: null, tasks: bench.tasks.length };
  const step = (at) => {
    if (scrolled.last !== null) scrolled.frames.push(at - scrolled.last);
    scrolled.last = at;
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
`;
const READ_FRAMES = `({
  frames: scrolled.frames,
  longest_task: Math.max(0, ...bench.tasks.slice(scrolled.tasks)),
  rows: Math.max(0, ...[...document.querySelectorAll('[role=row][aria-rowindex]')].map((row) => Number(row.getAttribute('aria-rowindex')))),
})`;
const WHEEL_PX = 900;
const WHEEL_MS = 60;

/** Scrolls a list by the wheel for this time; further pages of it are loaded meanwhile. */
export async function measureScroll(
  browser: Browser,
  url: string,
  { storageState, scroll_ms }: { storageState: StorageState; scroll_ms: number },
): Promise<Scrolled> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: 'en-US', storageState });
  try {
    const page = await context.newPage();
    await page.addInitScript({ content: WATCH });
    await page.goto(url);
    await waitForTimes(page);
    await page.mouse.move(800, 600);
    await page.evaluate(WATCH_FRAMES);
    const end = performance.now() + scroll_ms;
    while (performance.now() < end) {
      await page.mouse.wheel(0, WHEEL_PX);
      await page.waitForTimeout(WHEEL_MS);
    }
    const { frames, longest_task, rows } = await page.evaluate<{
      frames: number[];
      longest_task: number;
      rows: number;
    }>(READ_FRAMES);
    return {
      frames: frames.length,
      median_frame: median(frames),
      longest_frame: Math.max(...frames),
      longest_task,
      rows,
    };
  } finally {
    await context.close();
  }
}
