/** `npm run chaos -- --seed S --minutes M [--seeds N] [--kafka]`: prints each seed, and the first difference. */
import { parseArgs } from 'node:util';
import { stopTestStores } from '../support/stores.ts';
import { lineOf, runChaos } from './chaos.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    seeds: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '1' },
    kafka: { type: 'boolean', default: false },
  },
});
const [first, count, minutes] = [Number(values.seed), Number(values.seeds), Number(values.minutes)];
if (!Number.isSafeInteger(first) || !Number.isSafeInteger(count) || !(minutes > 0)) {
  process.stderr.write('chaos: --seed and --seeds are whole numbers, --minutes is more than 0\n');
  process.exit(2);
}
let differences = 0;
for (let seed = first; seed < first + count; seed++) {
  process.stdout.write(`chaos: seed ${seed} for ${minutes} minutes${values.kafka ? ' on Kafka' : ''}\n`);
  const openStage = values.kafka ? (await import('./kafka-stage.ts')).kafkaStage : undefined;
  const report = await runChaos({ seed, minutes }, openStage);
  process.stdout.write(`${lineOf(report)}\n`);
  if (report.difference === undefined) continue;
  differences++;
  process.stdout.write(`first difference: ${report.difference}\n`);
}
await stopTestStores();
process.exit(differences === 0 ? 0 : 1);
