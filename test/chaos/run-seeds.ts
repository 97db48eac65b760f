/**
 * Many seeds in one command. Most of them share an installation, one after the other: it grows old, with the events, meters
 * and invoices of all seeds before in it, and no time goes into starting stores. Some have an installation of their own,
 * because what happens in the first seconds of a life happens only there. It ends at the first difference.
 */
import { type ChaosReport, chaosOn } from './chaos.ts';
import type { Stage } from './stage.ts';

type SeedsAsked = {
  readonly first: number;
  readonly count: number;
  readonly minutes: number;
  /** How many seeds the installations have, in turn. */
  readonly sizes: readonly number[];
};

export type SeedDone = {
  readonly seed: number;
  readonly installation: number;
  readonly report?: ChaosReport;
  /** Nothing when all was as it should be. */
  readonly difference: string | undefined;
};

/** Of ten seeds two have an installation of their own, and eight share one. */
export const SIZES = [1, 1, 8];
/** Beyond the minutes of the chaos: for starting, settling and checking. */
const REST_WITHIN_MS = 420_000;

/** Those that were run; all of them, or up to and with the first that differs. */
export async function runSeeds(
  asked: SeedsAsked,
  { openStage, done }: { openStage(installation: number): Promise<Stage>; done(seed: SeedDone): void },
): Promise<SeedDone[]> {
  const all: SeedDone[] = [];
  for (let installation = 1; all.length < asked.count; installation++) {
    const size = asked.sizes[(installation - 1) % asked.sizes.length]!;
    const first = asked.first + all.length;
    const seeds = Array.from({ length: Math.min(size, asked.count - all.length) }, (_none, index) => first + index);
    const stage = await openStage(installation);
    try {
      for (const seed of seeds) {
        const one = { installation, seed, ...(await runSeed(stage, { seed, minutes: asked.minutes })) };
        all.push(one);
        done(one);
        if (one.difference !== undefined) return all;
      }
    } finally {
      await stage.stop();
    }
  }
  return all;
}

type Outcome = Pick<SeedDone, 'report' | 'difference'>;

/** A seed that ends with an error, or does not end, is a difference too. */
async function runSeed(stage: Stage, asked: { seed: number; minutes: number }): Promise<Outcome> {
  const within_ms = asked.minutes * 60_000 + REST_WITHIN_MS;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Outcome>((resolve) => {
    timer = setTimeout(() => resolve({ difference: `it did not end within ${within_ms / 1000} s` }), within_ms);
  });
  const playing = chaosOn(stage, asked).then(
    (report): Outcome => ({ report, difference: report.difference }),
    (error: Error): Outcome => ({ difference: error.stack ?? String(error) }),
  );
  const outcome = await Promise.race([playing, late]);
  clearTimeout(timer);
  return outcome;
}

type Column = readonly [name: string, of: (seed: SeedDone) => number];

const COLUMNS: readonly Column[] = [
  ['events', ({ report }) => report?.counts.events ?? 0],
  ['sent singly', ({ report }) => report?.counts.singly ?? 0],
  ['sent again', ({ report }) => report?.counts.again ?? 0],
  ['late by days', ({ report }) => report?.counts.late ?? 0],
  ['of old months', ({ report }) => report?.counts.old ?? 0],
  ['corrections', ({ report }) => (report ? report.counts.voided + report.counts.replaced : 0)],
  ['meters', ({ report }) => report?.meters ?? 0],
  ['changes of meters', ({ report }) => report?.counts.changed ?? 0],
  ['kills', (seed) => disturbancesOf(seed, /^kill/)],
  ['two kills in a row', (seed) => disturbancesOf(seed, /^two kills/)],
  ['engine killed at a call', (seed) => disturbancesOf(seed, /^engine killed/)],
  ['service killed at a statement', (seed) => disturbancesOf(seed, /^service killed/)],
  ['stops', (seed) => disturbancesOf(seed, /^SIGSTOP/)],
  ['outages', (seed) => disturbancesOf(seed, /^(cut|hang)/)],
  ['statements lost, late, twice', (seed) => disturbancesOf(seed, /^statements/)],
  ['clock steps', (seed) => disturbancesOf(seed, /^clock/)],
  ['disk hangs', (seed) => disturbancesOf(seed, /^disk hangs/)],
  ['disk full', (seed) => disturbancesOf(seed, /^disk full/)],
  ['power lost', (seed) => disturbancesOf(seed, /^power/)],
  ['files damaged', (seed) => disturbancesOf(seed, /^file/)],
  ['rows audited', ({ report }) => report?.rows ?? 0],
  ['invoices compared', ({ report }) => report?.counts.invoices ?? 0],
  ['lines', ({ report }) => report?.counts.lines ?? 0],
];

function disturbancesOf({ report }: SeedDone, kind: RegExp): number {
  return report?.disturbances.filter((text) => kind.test(text)).length ?? 0;
}

/** Markdown: the sums over all seeds, for docs/reliability.md. */
export function tableOf(seeds: readonly SeedDone[], { log, minutes }: { log: string; minutes: number }): string {
  const total = (of: (seed: SeedDone) => number) => seeds.reduce((sum, seed) => sum + of(seed), 0);
  const installations = new Set(seeds.map(({ installation }) => installation)).size;
  const different = seeds.filter(({ difference }) => difference !== undefined).length;
  const cells: [string, string][] = [
    ['log', log],
    ['seeds', `${seeds[0]?.seed}–${seeds.at(-1)?.seed}`],
    ['installations', String(installations)],
    ['minutes each', String(minutes)],
    ...COLUMNS.map(([name, of]): [string, string] => [name, total(of).toLocaleString('en-US')]),
    ['result', different === 0 ? 'equal' : `${different} differs`],
  ];
  const row = (texts: readonly string[]) => `| ${texts.join(' | ')} |`;
  return [row(cells.map(([name]) => name)), row(cells.map(() => '---')), row(cells.map(([, text]) => text))].join('\n');
}
