/** Output of the demo: one line per step, a progress bar, a chart, a table. Plain lines without a terminal. */
import { Presets, SingleBar } from 'cli-progress';

/** Runs a step and prints one line: its result and its duration. */
export async function runStep<Result>(
  name: string,
  work: () => Promise<{ message: string; result: Result }>,
): Promise<Result> {
  const began = performance.now();
  const { message, result } = await work();
  console.log(`${name.padEnd(12)} ${message} (${formatSeconds(performance.now() - began)})`);
  return result;
}

export function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 9_950 ? 2 : 0)} s`;
}

export function formatGrouped(value: bigint | number | string): string {
  const [whole = '', fraction] = String(value).split('.');
  return whole.replace(/\B(?=(\d{3})+(?!\d))/g, ',') + (fraction === undefined ? '' : `.${fraction}`);
}

type StepProgress = { advance(count: number): void; end(): void };

export function startProgress(total: number, what: string): StepProgress {
  return process.stdout.isTTY ? progressBar(total, what) : progressLines(total, what);
}

function progressBar(total: number, what: string): StepProgress {
  const bar = new SingleBar(
    {
      format: `  [{bar}] {percentage} % · {value} of {total} ${what} · {rate} a second · {left} s left`,
      hideCursor: true,
      clearOnComplete: true,
    },
    Presets.shades_classic,
  );
  // A process that ends in between, e.g. by Ctrl-C, must not leave the cursor hidden.
  const stop = () => bar.stop();
  process.once('exit', stop);
  bar.start(total, 0, { rate: '–', left: '–' });
  const pace = createPace(total);
  return {
    advance: (count) => bar.update(pace.after(count).done, { rate: formatGrouped(pace.rate()), left: pace.left() }),
    end: () => {
      process.off('exit', stop);
      stop();
    },
  };
}

/** About ten lines in total for any number of batches. */
function progressLines(total: number, what: string): StepProgress {
  const pace = createPace(total);
  let tenths = 0;
  return {
    advance: (count) => {
      const { done } = pace.after(count);
      if (Math.floor((done / total) * 10) === tenths) return;
      tenths = Math.floor((done / total) * 10);
      const percent = Math.floor((done / total) * 100);
      console.log(
        `  ${formatGrouped(done)} of ${formatGrouped(total)} ${what} · ${percent} % · ${formatGrouped(pace.rate())} a second · ${pace.left()} s left`,
      );
    },
    end: () => {},
  };
}

function createPace(total: number) {
  const began = performance.now();
  let done = 0;
  const perMs = () => done / Math.max(1, performance.now() - began);
  return {
    after: (count: number) => {
      done += count;
      return { done };
    },
    rate: () => Math.round(perMs() * 1000),
    left: () => (done === 0 ? '–' : String(Math.ceil((total - done) / perMs() / 1000))),
  };
}

export type Hour = { readonly start: string; readonly value: bigint };

const HOURS_SHOWN = 24;
const BAR_WIDTH = 50;

/** One bar per hour; for a long time only the last hours. */
export function renderChart(title: string, hours: readonly Hour[]): string {
  const shown = hours.slice(-HOURS_SHOWN);
  const most = shown.reduce((max, { value }) => (value > max ? value : max), 1n);
  const bars = shown.map(({ start, value }) => {
    const eighths = Number((value * BigInt(BAR_WIDTH * 8)) / most);
    const bar = '█'.repeat(eighths >> 3) + ' ▏▎▍▌▋▊▉'.charAt(eighths & 7).trim();
    return `  ${start.slice(0, 10)} ${start.slice(11, 16)}  ${bar} ${formatGrouped(value)}`;
  });
  const before = hours.length - shown.length;
  return [`  ${title}`, ...(before > 0 ? [`  … ${before} hours before`] : []), ...bars].join('\n');
}

/** Formats a table. A column is as wide as its widest cell; the first one is aligned left, numbers are aligned right. */
export function renderTable(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_cell, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const line = (row: readonly string[]) =>
    `  ${row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join('   ')}`;
  const rule = `  ${'─'.repeat(widths.reduce((sum, width) => sum + width + 3, -3))}`;
  const [head, ...body] = rows;
  return [line(head!), rule, ...body.map(line)].join('\n');
}
