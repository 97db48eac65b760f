/** Capacity: the most mixed requests per second, sent when they are due, of which 99 in a hundred are answered within a second. */
import { formatShares, isDisturbed, watchCores } from './core-shares.ts';
import { type Answered, type RequestInput, sendWhenDue } from './due-requests.ts';
import { pause } from './processes.ts';
import { claim, fixed, flag, median, quantile, say } from './report.ts';
import type { Floor } from './requests-floor.ts';
import { mixRequests } from './requests-mix.ts';
import type { Side } from './requests-side.ts';

const P99_MAX_MS = 1_000;
const FIRST_RATE = 64;
/** Steps between the last rate that was reached and the first that was not: a sixteenth of it remains. */
const BISECTIONS = 4;
const CONNECTIONS = 4_096;
/** A rate that was missed while other work took a part of the machine is tried again. */
const TRIES_MAX = 3;
const MUST = 2;
const MUST_FLOOR = 20;

/** Returns the capacity of this checkout. */
export async function compareCapacity(ours: Side, theirs: Side | undefined, floor: Floor): Promise<number> {
  const pairs = flag('pairs', 5);
  const found: { ours: number[]; theirs: number[] } = { ours: [], theirs: [] };
  for (let pair = 0; pair < pairs; pair++) {
    const both = theirs === undefined ? [ours] : [ours, theirs];
    for (const side of pair % 2 === 0 ? both : both.reverse())
      found[side === ours ? 'ours' : 'theirs'].push(await findCapacity(side, pair));
  }
  const capacity = median(found.ours);
  const show = (all: readonly number[]) => `${fixed(median(all), 0)}/s (${all.map((one) => fixed(one, 0)).join(', ')})`;
  if (theirs === undefined) say(`  capacity: ${show(found.ours)}`);
  else {
    const ratio = median(found.ours.map((one, pair) => one / found.theirs[pair]!));
    const measured = `${show(found.ours)} ÷ ${show(found.theirs)} = ${fixed(ratio, 2)}`;
    claim('capacity', measured, `${MUST}`, ratio >= MUST);
  }
  await compareWithFloor(ours, floor, 0.6 * capacity);
  return capacity;
}

/** Doubles the rate until it is too high, then bisects. */
async function findCapacity({ name, service, world }: Side, pair: number): Promise<number> {
  const seconds = flag('step', 15);
  const isReached = async (rate: number) => {
    for (let tries = 1; ; tries++) {
      const seed = pair * 100_000 + tries * 10_000 + rate;
      const stop = watchCores(service);
      const answers = await sendWhenDue(service, { seconds, rate, connections: CONNECTIONS }, mixRequests(world, seed));
      const shares = stop();
      const p99 = quantile(answers.map(countRefusedAsLate), 0.99);
      const refused = answers.filter(({ status }) => status >= 400).length;
      const measured = `${rate}/s, p99 ${fixed(p99, 0)} ms, refused ${refused} of ${answers.length}`;
      say(`    ${name}: ${measured}; ${formatShares(shares)}`);
      while ((await service.call<number>({ what: 'lag' })) > 0) await pause(100);
      if (p99 <= P99_MAX_MS) return true;
      if (!isDisturbed(shares) || tries === TRIES_MAX) return false;
    }
  };
  let reached = 0;
  let missed = FIRST_RATE;
  while (await isReached(missed)) [reached, missed] = [missed, missed * 2];
  for (let step = 0; step < BISECTIONS && missed - reached > 1; step++) {
    const middle = Math.round((reached + missed) / 2);
    if (await isReached(middle)) reached = middle;
    else missed = middle;
  }
  return Math.max(reached, 1);
}

export function countRefusedAsLate({ status, ms }: Answered<string>): number {
  return status >= 400 ? Number.POSITIVE_INFINITY : ms;
}

async function compareWithFloor({ service, world }: Side, floor: Floor, rate: number): Promise<void> {
  const during = { seconds: flag('overload', 60), rate };
  const [id] = world.customer_ids;
  const request: RequestInput = { method: 'GET', path: `/customers/${id}` };
  const bare = await sendWhenDue(floor, during, () => ({ kind: 'floor', request }));
  const own = await sendWhenDue(service, { ...during, connections: CONNECTIONS }, mixRequests(world, 5));
  const [floor_p99, p99] = [bare, own].map((all) => quantile(all.map(countRefusedAsLate), 0.99)) as [number, number];
  const ratio = p99 / floor_p99;
  const measured = `p99 ${fixed(p99)} ÷ ${fixed(floor_p99)} ms of bare Express with a select = ${fixed(ratio)}`;
  claim(`p99 at ${fixed(rate, 0)}/s, 0.6 of the capacity`, measured, `${MUST_FLOOR}`, ratio <= MUST_FLOOR);
}
