/**
 * `npm run chaos -- [--from-seed S] [--seeds N] [--minutes M] [--per-installation K] [--kafka]`: a line for each seed and a
 * table of the sums; it ends at the first difference, with exit code 1. Any number of these may run side by side.
 */
import { constants } from 'node:os';
import { exitWithUsage, parseArguments } from '../../process/command-line.ts';
import { stopTestStores } from '../support/stores.ts';
import { lineOf } from './chaos.ts';
import { embeddedStage } from './embedded-stage.ts';
import { runSeeds, type SeedDone, SIZES, tableOf } from './run-seeds.ts';
import type { Stage } from './stage.ts';
import { waysStage } from './ways-stage.ts';

const values = parseArguments('chaos', {
  'from-seed': { type: 'string' },
  seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  seeds: { type: 'string', default: '1' },
  minutes: { type: 'string', default: '1' },
  'per-installation': { type: 'string' },
  kafka: { type: 'boolean', default: false },
});
const minutes = Number(values.minutes);
const sizes = values['per-installation'] === undefined ? SIZES : [Number(values['per-installation'])];
const asked = { first: Number(values['from-seed'] ?? values.seed), count: Number(values.seeds), minutes, sizes };
if (![asked.first, asked.count, ...sizes].every((number) => Number.isSafeInteger(number) && number >= 0))
  exitWithUsage('chaos', '--seed, --from-seed, --seeds and --per-installation are whole numbers');
if (!(minutes > 0) || sizes.includes(0)) exitWithUsage('chaos', '--minutes and --per-installation are more than 0');

const began = performance.now();
const openOne = values.kafka
  ? (await import('./kafka-stage.ts')).kafkaStage
  : (installation: number) => (installation % 2 === 1 ? embeddedStage() : waysStage());
let open: Stage | undefined;
const openStage = async (installation: number) => {
  open = await openOne(installation);
  return open;
};
// Nothing of it is left behind when it is broken off.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void breakOff(signal));

const seeds = await runSeeds(asked, { openStage, done: sayDone });
await stopTestStores();
const seconds = Math.round((performance.now() - began) / 1000);
say(`\n${tableOf(seeds, { log: values.kafka ? 'Kafka' : 'embedded', minutes })}`);
say(`${seeds.length} seeds in ${seconds} s, ${Math.round((seconds / seeds.length) * 10) / 10} s each`);
process.exit(seeds.every(({ difference }) => difference === undefined) ? 0 : 1);

async function breakOff(signal: 'SIGINT' | 'SIGTERM'): Promise<void> {
  await open?.stop().catch((error: Error) => process.stderr.write(`chaos: ${error.message}\n`));
  await stopTestStores();
  process.exit(128 + constants.signals[signal]);
}

function sayDone({ seed, installation, report, difference }: SeedDone): void {
  say(`installation ${installation}, ${report ? lineOf(report) : `seed ${seed}: FAILED`}`);
  const more = `--from-seed ${seed} --minutes ${minutes}${values.kafka ? ' --kafka' : ''}`;
  if (difference !== undefined) say(`first difference, with npm run chaos -- ${more}: ${difference}`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
