/** CPU of a request of each kind, four at a time, of one or two services and of bare Express. */
import { Agent } from 'node:http';
import { type RequestInput, send, type Service as Target } from './due-requests.ts';
import type { OutsideService } from './outside-service.ts';
import { pause } from './processes.ts';
import { claim, fixed, flag, median, quantile, say, textFlag } from './report.ts';
import type { Floor } from './requests-floor.ts';
import type { Side } from './requests-side.ts';
import { REQUESTS, type RequestsWorld } from './requests-world.ts';
import { seeded } from './workload.ts';

const AT_A_TIME = 4;
const WARM_UP_MS = 1_000;

/** Milliseconds of CPU per request: of the process that answers, of the stores, and of the whole tree. */
export type Cost = { node: number; clickhouse: number; postgres: number; total: number };
type Measured = { cost: Cost; took: number[]; per_second: number };
type Measure = { target: Target; next: () => RequestInput; cpu: () => Cost };

const FLOORS: Record<string, (world: RequestsWorld) => RequestInput> = {
  'bare Express': () => ({ method: 'GET', path: '/constant' }),
  'bare Express, customer': ({ customer_ids: [id] }) => ({ method: 'GET', path: `/customers/${id}` }),
  'bare Express, new customer': () => ({
    method: 'POST',
    path: '/customers',
    body: { external_id: `floor_${process.hrtime.bigint()}`, name: 'bench' },
  }),
};

/** Prints the cost of each kind for this checkout. */
export async function measureKinds(ours: Side, floor: Floor): Promise<void> {
  say(`  ${'request'.padEnd(28)} CPU ms: service  ClickHouse  Postgres; p50, p99 ms; a second`);
  const show = (kind: string, { cost, took, per_second }: Measured) =>
    say(
      `  ${kind.padEnd(28)} ${column(cost.node, 15)} ${column(cost.clickhouse, 11)} ${column(cost.postgres, 9)}; ` +
        `${fixed(quantile(took, 0.5))}, ${fixed(quantile(took, 0.99))}; ${fixed(per_second, 0)}`,
    );
  for (const kind of Object.keys(FLOORS)) show(kind, await measureFloor(kind, ours, floor));
  await removeFloorCustomers(ours);
  await refreshStatistics(ours);
  for (const kind of wantedKinds()) show(kind, await measureKind(kind, ours, 7));
}

/** Compares the cost of each kind in interleaved pairs. */
export async function compareCpu(ours: Side, theirs: Side, floor: Floor): Promise<void> {
  const pairs = flag('pairs', 5);
  const costs = new Map<string, { ours: Cost[]; theirs: Cost[] }>();
  const add = (kind: string, side: 'ours' | 'theirs', { cost }: Measured) => {
    const own = costs.get(kind) ?? { ours: [], theirs: [] };
    costs.set(kind, own);
    own[side].push(cost);
  };
  for (let pair = 0; pair < pairs; pair++) {
    for (const kind of Object.keys(FLOORS)) add(kind, 'ours', await measureFloor(kind, ours, floor));
    await removeFloorCustomers(ours);
    for (const side of [ours, theirs]) await refreshStatistics(side);
    for (const kind of wantedKinds()) {
      const both = [['ours', ours] as const, ['theirs', theirs] as const];
      for (const [side, one] of pair % 2 === 0 ? both : both.reverse())
        add(kind, side, await measureKind(kind, one, pair));
    }
  }
  say(`  medians of ${pairs} pairs, CPU ms per request: service + ClickHouse + Postgres, of the whole tree`);
  const format = (all: readonly Cost[]) =>
    all.length === 0
      ? ''
      : `${(['node', 'clickhouse', 'postgres', 'total'] as const).map((part) => column(middle(all, part), 7)).join(' ')}`;
  say(`  ${'request'.padEnd(28)} ${'this checkout'.padStart(31)} | ${theirs.name.slice(0, 31).padStart(31)} | ratio`);
  for (const [kind, own] of costs) {
    const ratio = own.theirs.length === 0 ? '' : ` | ${fixed(ratioOfPairs(own), 2)}`;
    say(`  ${kind.padEnd(28)} ${format(own.ours)} | ${format(own.theirs)}${ratio}`);
  }
  claimRatios(costs);
}

/** The floor writes to the tables of this checkout; the lists of both sides must be of equal length. */
function removeFloorCustomers({ service }: Side): Promise<unknown> {
  return service.call({ what: 'postgres', sql: `delete from customers where external_id like 'floor\\_%'` });
}

/** As in an installation that has run for more than a minute: without statistics Postgres reads a whole environment for one id. */
function refreshStatistics({ service }: Side): Promise<unknown> {
  return service.call({ what: 'postgres', sql: 'vacuum analyze' });
}

function claimRatios(costs: ReadonlyMap<string, { ours: Cost[]; theirs: Cost[] }>): void {
  const floors = [
    ['roles', 'bare Express', 2.5],
    ['customer', 'bare Express, customer', 2],
    ['new customer', 'bare Express, new customer', 2],
  ] as const;
  for (const [kind, floor, must] of floors) {
    const [own, bare] = [costs.get(kind), costs.get(floor)];
    if (!own || !bare) continue;
    const ratio = median(own.ours.map(({ node }, pair) => node / bare.ours[pair]!.node));
    const stores = ({ node, postgres }: Cost) => node + postgres;
    const whole = median(own.ours.map((cost, pair) => stores(cost) / stores(bare.ours[pair]!)));
    const measured = `${fixed(ratio, 2)} × ${floor}; with Postgres ${fixed(whole, 2)} ×`;
    claim(`${kind}, CPU of the process`, measured, `${must}`, ratio <= must);
  }
  for (const kind of ['preview', 'new subscription', 'analytics']) {
    const own = costs.get(kind);
    if (own)
      claim(
        `${kind}, CPU of the tree`,
        `${fixed(ratioOfPairs(own), 2)} of the commit`,
        '0.5',
        ratioOfPairs(own) <= 0.5,
      );
  }
}

const column = (value: number, width: number) => fixed(value, 2).padStart(width);
const middle = (all: readonly Cost[], part: keyof Cost) => median(all.map((cost) => cost[part]));

function ratioOfPairs({ ours, theirs }: { ours: Cost[]; theirs: Cost[] }): number {
  return median(ours.map(({ total }, pair) => total / theirs[pair]!.total));
}

function wantedKinds(): string[] {
  const wanted = textFlag('kinds')?.split(',');
  return Object.keys(REQUESTS).filter((kind) => wanted === undefined || wanted.includes(kind));
}

export async function measureKind(kind: string, { service, world }: Side, seed: number): Promise<Measured> {
  const random = seeded(seed + 7);
  // Events of the kind before are otherwise counted during this one.
  while ((await service.call<number>({ what: 'lag' })) > 0) await pause(100);
  return measure(kind, { target: service, next: () => REQUESTS[kind]!(world, random), cpu: () => costOf(service) });
}

function measureFloor(kind: string, { service, world }: Side, floor: Floor): Promise<Measured> {
  const cpu = () => {
    const { postgres } = service.cpu();
    return { node: floor.cpu(), clickhouse: 0, postgres, total: floor.cpu() + postgres };
  };
  return measure(kind, { target: floor, next: () => FLOORS[kind]!(world), cpu });
}

function costOf(service: OutsideService): Cost {
  const { total, clickhouse, postgres } = service.cpu();
  return { node: total - clickhouse - postgres, clickhouse, postgres, total };
}

async function measure(kind: string, { target, next, cpu }: Measure): Promise<Measured> {
  const agent = new Agent({ keepAlive: true });
  const took: number[] = [];
  const work = async (until: number, record: boolean) => {
    while (performance.now() < until) {
      const answer = await send(target, agent, next());
      if (answer.status >= 400) throw new Error(`${kind}: ${answer.status}`);
      if (record) took.push(answer.ms);
    }
  };
  const all = (for_ms: number, record: boolean) =>
    Promise.all(Array.from({ length: AT_A_TIME }, () => work(performance.now() + for_ms, record)));
  await all(WARM_UP_MS, false);
  const before = cpu();
  const began = performance.now();
  await all(flag('seconds', 3) * 1000, true);
  const elapsed_s = (performance.now() - began) / 1000;
  const after = cpu();
  agent.destroy();
  const of = (part: keyof Cost) => ((after[part] - before[part]) * 1000) / took.length;
  const cost = { node: of('node'), clickhouse: of('clickhouse'), postgres: of('postgres'), total: of('total') };
  return { cost, took, per_second: took.length / elapsed_s };
}
