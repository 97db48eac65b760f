/**
 * A hundred calls a second to the records of a tenant with 10,000 customers: reads and changes of the catalogue, customers, entitlements,
 * prices and subscriptions, lists and searches, the audit log, webhook endpoints. In the same run and at the same rate it calls `/health`,
 * which does nothing, and `/ready`, which pings the stores. Their times are the minimum of any call on this machine. For a short try:
 * `--seconds=10 --runs=1 --customers=1000`.
 */

import { KINDS, makeWorld, nextCall } from './calls-world.ts';
import { percentiles, sendWhenDue } from './due-requests.ts';
import { type Service, startService } from './processes.ts';
import { check, claim, fixed, flag, median, quantile, say } from './report.ts';
import { seeded } from './workload.ts';

/** Limit of the 99th percentile; bench/mixed-load.ts has the same limit. */
const MUST_P99_MS = 250;
/** Duration of the warm-up, after which the code is compiled, connections are open, and pages are cached. */
const WARM_UP_S = 5;
/** Divisor of the duration for `/health` and `/ready`. Their times vary little, so fewer calls suffice. */
const FLOOR_PART = 4;

type Run = { all: number[]; byKind: Map<string, number[]>; floor: number[]; refused: number };

export async function run(): Promise<void> {
  const [seconds, rate, runs, customers] = [
    flag('seconds', 60),
    flag('rate', 100),
    flag('runs', 3),
    flag('customers', 10_000),
  ];
  const service = await startService();
  try {
    const world = await makeWorld(service, customers);
    await sendWhenDue(service, { seconds: Math.min(WARM_UP_S, seconds), rate }, nextCall(world, seeded(1)));
    const done: Run[] = [];
    for (let index = 0; index < runs; index++) {
      const cpu = service.cpu();
      const one = await once(service, () => nextCall(world, seeded(index + 2)), { seconds, rate });
      const { total, postgres } = service.cpu();
      const of = (used: number) => `${fixed((used * 1000) / one.all.length)} ms`;
      say(`  run ${index + 1}: ${percentiles(one.all)}; floor ${percentiles(one.floor)}`);
      say(`    CPU per call, floor included: ${of(total - cpu.total)}, Postgres ${of(postgres - cpu.postgres)}`);
      done.push(one);
    }
    report(done);
  } finally {
    await service.stop();
  }
}

async function once(
  service: Service,
  calls: () => ReturnType<typeof nextCall>,
  { seconds, rate }: { seconds: number; rate: number },
): Promise<Run> {
  const answers = await sendWhenDue(service, { seconds, rate }, calls());
  const refused = answers.filter(({ status }) => status >= 400);
  for (const { kind, status } of refused.slice(0, 3)) say(`    ${kind}: refused with ${status}`);
  const during = { seconds: Math.max(1, Math.round(seconds / FLOOR_PART)), rate };
  const health = await sendWhenDue(service, during, () => ({
    kind: 'floor',
    request: { method: 'GET', path: '/health' },
  }));
  const ready = await sendWhenDue(service, during, () => ({
    kind: 'ready',
    request: { method: 'GET', path: '/ready' },
  }));
  check(
    [...health, ...ready].every(({ status }) => status === 200),
    'the floor is answered',
  );
  const byKind = new Map<string, number[]>(KINDS.map((kind) => [kind, []]));
  for (const { kind, ms } of answers) byKind.get(kind)!.push(ms);
  byKind.set(
    '(the stores asked whether they live)',
    ready.map(({ ms }) => ms),
  );
  return { all: answers.map(({ ms }) => ms), byKind, floor: health.map(({ ms }) => ms), refused: refused.length };
}

/** Reports the median over the runs, for each number separately. */
function report(runs: readonly Run[]): void {
  const of = (part: number, pick: (run: Run) => readonly number[]) =>
    median(
      runs
        .map((one) => pick(one))
        .filter((took) => took.length > 0)
        .map((took) => quantile(took, part)),
    );
  for (const kind of runs[0]!.byKind.keys()) {
    const count = runs.reduce((sum, { byKind }) => sum + byKind.get(kind)!.length, 0);
    const pick = ({ byKind }: Run) => byKind.get(kind)!;
    if (count > 0) say(`  ${kind}: p50 ${fixed(of(0.5, pick))} ms, p99 ${fixed(of(0.99, pick))} ms, of ${count}`);
  }
  const [p50, p99] = [of(0.5, ({ all }) => all), of(0.99, ({ all }) => all)];
  const [floor50, floor99] = [of(0.5, ({ floor }) => floor), of(0.99, ({ floor }) => floor)];
  say(
    `  the floor: p50 ${fixed(floor50)} ms, p99 ${fixed(floor99)} ms; a call takes ${fixed(p50 / floor50)} and ${fixed(p99 / floor99)} times as long`,
  );
  const refused = runs.reduce((sum, one) => sum + one.refused, 0);
  claim(
    `calls, median of ${runs.length} runs`,
    `p50 ${fixed(p50)} ms, p99 ${fixed(p99)} ms, refused ${refused}`,
    `p99 ${MUST_P99_MS} ms`,
    p99 <= MUST_P99_MS && refused === 0,
  );
}
