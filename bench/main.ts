/** `npm run bench [-- name …] [--flag=value …]`: runs each benchmark in its own process, one after the other. */
import { spawn } from 'node:child_process';
import { cpus, loadavg, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { endWithBenchmark } from './children.ts';
import { NODE, NODE_FLAGS } from './processes.ts';

const BENCHMARKS: Record<string, { file: string; claim: string }> = {
  p1: { file: './p1-accept.ts', claim: 'durable bulk accepts against parsing the JSON alone' },
  p2: { file: './p2-whole-path.ts', claim: 'events per second and core, accepted to queryable' },
  p2k: { file: './p2k-kafka.ts', claim: 'the same on Kafka, in processes of their own, without the broker' },
  p3: { file: './p3-raw-insert.ts', claim: 'the whole path against inserting the raw events' },
  p4: { file: './p4-freshness.ts', claim: 'from accepted to visible in usage, at half of saturation' },
  p5: { file: './p5-usage.ts', claim: 'a customer-month from buckets against raw rows with FINAL' },
  p5b: { file: './p5b-until-now.ts', claim: 'usage until now over HTTP, while events arrive' },
  mixed: { file: './mixed-load.ts', claim: 'a hundred requests a second of every kind, one customer hot' },
  calls: {
    file: './calls.ts',
    claim: 'a hundred calls a second of the catalogue and its customers, beside a call that does nothing',
  },
  requests: {
    file: './requests.ts',
    claim: 'CPU of a request of each kind, capacity and overload, beside bare Express',
  },
  p6: { file: './p6-dedupe.ts', claim: 'what knowing every id costs' },
  scale: { file: './scale.ts', claim: '50 million events, 10,000 customers, 50 meters: ingest, restart, audit, ask' },
  p7: { file: './p7-billing-run.ts', claim: 'invoices finalized per second against COPY, and one after the other' },
  p8: { file: './p8-wallet.ts', claim: 'durable debits of one hot wallet against a FOR UPDATE for each' },
  p9: { file: './p9-balance.ts', claim: 'balances and entitlements at 5,000 reads a second, while events arrive' },
  p8b: { file: './p8b-reservations.ts', claim: 'exact holds of one hot feature against a FOR UPDATE for each' },
  p10: { file: './expression.ts', claim: 'expressions per second and core, in exact decimals' },
  p12: { file: './p12-clock.ts', claim: 'billing periods per second by the clock of an environment' },
  p13: { file: './p13-dashboard.ts', claim: 'the revenue dashboard of 100,000 customers and three years' },
  p14: { file: './p14-export.ts', claim: 'an export of a million events to a file: rows per second, memory' },
  p15: { file: './p15-corrections.ts', claim: 'a thousand corrections among 100,000 events against the events alone' },
  pushes: {
    file: './pushes.ts',
    claim: 'five invoices to a provider among 10,000 of another tenant, and the rate of requests',
  },
  console: {
    file: './console.ts',
    claim: 'pages of the console beside an empty React page, a long list, and a live page',
  },
  neighbour: { file: './neighbour.ts', claim: 'what one tenant feels while another does its worst' },
  cost: { file: './expression-cost.ts', claim: 'the weights of expressions, and the slowest that is let pass' },
};

/** Benchmarks that run only if they are named. */
const LONG = new Set(['scale', 'p2k', 'requests']);

/** `--against <commit>` is the same as `--against=<commit>`. */
const given = process.argv.slice(2).flatMap((argument, index, all) => {
  if (all[index - 1] === '--against') return [];
  return argument === '--against' ? `--against=${all[index + 1] ?? ''}` : argument;
});
const names = given.filter((argument) => !argument.startsWith('--'));
const flags = given.filter((argument) => argument.startsWith('--'));
const unknown = names.filter((name) => !Object.hasOwn(BENCHMARKS, name));
if (unknown.length > 0) {
  console.error(`no such benchmark: ${unknown.join(', ')}. There are: ${Object.keys(BENCHMARKS).join(', ')}`);
  process.exit(1);
}

const [cpu] = cpus();
const load = loadavg().map((value) => value.toFixed(1));
console.log(
  `${cpus().length} × ${cpu?.model.trim()}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, Node ${process.versions.node}`,
);
console.log(`load ${load.join(' ')}${Number(load[0]) > 1 ? ': other work is running, compare ratios only' : ''}`);

let failed = 0;
for (const name of names.length > 0 ? names : Object.keys(BENCHMARKS).filter((one) => !LONG.has(one))) {
  const { file, claim } = BENCHMARKS[name]!;
  console.log(`\n${name}  ${claim}`);
  const began = performance.now();
  const code = await runOne(file);
  if (code !== 0) failed++;
  console.log(`  ${code === 0 ? 'done' : 'FAILED'} in ${((performance.now() - began) / 1000).toFixed(0)} s`);
}
process.exitCode = failed > 0 ? 1 : 0;

/** Runs a benchmark in a new process, so that memory and compiled code of one benchmark do not affect the next. */
function runOne(file: string): Promise<number> {
  const starter = fileURLToPath(new URL('./one.ts', import.meta.url));
  const url = new URL(file, import.meta.url).href;
  const child = endWithBenchmark(
    spawn(NODE, [...NODE_FLAGS, '--expose-gc', starter, url, ...flags], { stdio: 'inherit' }),
  );
  return new Promise((resolve) => child.on('exit', (code) => resolve(code ?? 1)));
}
