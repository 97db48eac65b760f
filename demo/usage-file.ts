/**
 * Input of the demo: one row per call of a language model, as text, so that a file and the generator share one parser. Every row is
 * checked. The error names the line of an unreadable row, and nothing is billed.
 */
import { createHash } from 'node:crypto';

export type UsageRow = {
  /** Line number in the file; the header is line 1. */
  readonly line: number;
  /** RFC 3339, with the digits of the file. */
  readonly timestamp: string;
  readonly context_tokens: bigint;
  readonly generated_tokens: bigint;
};

export type UsageFile = {
  readonly name: string;
  /** The digest is computed from the content alone: an equal file gives equal ids, so a second run is a re-send. */
  readonly digest: string;
  readonly rows: readonly UsageRow[];
};

export class BadUsageFile extends Error {}

const HEADER = 'TIMESTAMP,ContextTokens,GeneratedTokens';
const ROW = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d{1,9})?Z?,(\d{1,24}),(\d{1,24})$/;
const FAULTS_SHOWN = 10;

export function readUsage(name: string, text: string): UsageFile {
  const lines = text
    .replace(/^\u{FEFF}/u, '')
    .replace(/\r?\n$/, '')
    .split(/\r?\n/);
  if (lines[0]?.trim().toLowerCase() !== HEADER.toLowerCase()) {
    throw new BadUsageFile(`${name}: line 1: the header must be ${HEADER}`);
  }
  const rows: UsageRow[] = [];
  const faults: string[] = [];
  for (let index = 1; index < lines.length; index++) {
    const row = readRow(lines[index]!, index + 1);
    if (typeof row === 'string') faults.push(`${name}: line ${index + 1}: ${row}`);
    else rows.push(row);
  }
  if (faults.length > FAULTS_SHOWN) faults.splice(FAULTS_SHOWN, faults.length, `${name}: and more`);
  if (faults.length > 0) throw new BadUsageFile(faults.join('\n'));
  if (rows.length === 0) throw new BadUsageFile(`${name}: has no rows`);
  return { name, digest: createHash('sha256').update(text).digest('hex').slice(0, 12), rows };
}

/** The row, or the reason why it is invalid. */
function readRow(text: string, line: number): UsageRow | string {
  const fields = ROW.exec(text.trim());
  if (!fields) return `must be a UTC timestamp and two whole numbers, such as 2023-11-16 18:17:03.9799600,4808,10`;
  const [, date, time, fraction = '', context_tokens, generated_tokens] = fields;
  const timestamp = `${date}T${time}${fraction}Z`;
  const instant = Date.parse(`${date}T${time}Z`);
  if (Number.isNaN(instant) || !new Date(instant).toISOString().startsWith(`${date}T${time}`)) {
    return `${date} ${time} is no instant of the calendar`;
  }
  return { line, timestamp, context_tokens: BigInt(context_tokens!), generated_tokens: BigInt(generated_tokens!) };
}

/** A day of calls in the shape of a real trace: busy by day, quiet by night, long prompts and short answers. */
export function generateUsage({ seed, rows }: { seed: number; rows: number }): UsageFile {
  const random = randomFrom(seed);
  const ticks: number[] = [];
  while (ticks.length < rows) {
    const day = random();
    const busy = 0.15 + 0.85 * Math.sin(Math.PI * day) ** 2;
    if (random() < busy) ticks.push(Math.floor(day * 86_400 * 1e7));
  }
  ticks.sort((a, b) => a - b);
  const lines = ticks.map((tick) => {
    const context = Math.max(1, Math.round(Math.exp(7.2 + 1.1 * normal(random))));
    const generated = Math.max(1, Math.round(Math.exp(2.7 + 0.9 * normal(random))));
    return `${DAY} ${clockTime(tick)},${Math.min(context, 16_000)},${Math.min(generated, 4_000)}`;
  });
  return readUsage(`generated (seed ${seed})`, `${[HEADER, ...lines].join('\r\n')}\r\n`);
}

/** A past day, so that its month can be closed. */
const DAY = '2025-01-15';

function clockTime(tick: number): string {
  const second = Math.floor(tick / 1e7);
  const fraction = String(tick - second * 1e7).padStart(7, '0');
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  return `${two(second / 3600)}:${two((second / 60) % 60)}:${two(second % 60)}.${fraction}`;
}

/** Mulberry32: equal seeds give equal numbers on every platform. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
