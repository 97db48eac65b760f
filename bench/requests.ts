/**
 * CPU of a request of each kind, four at a time, beside bare Express in the same run. `--kinds=a,b` measures only these kinds; `--seconds=3` is
 * the time for each.
 */
import { fork } from 'node:child_process';
import { Agent } from 'node:http';
import { fileURLToPath } from 'node:url';
import { cpuOfTree } from './cpu.ts';
import { type RequestInput, send, type Service as Target } from './due-requests.ts';
import { type EmbeddedService, NODE, NODE_FLAGS, startService } from './processes.ts';
import { fixed, flag, quantile, say } from './report.ts';
import { makeRequestsWorld, REQUESTS } from './requests-world.ts';
import { seeded } from './workload.ts';

const AT_A_TIME = 4;

export async function run(): Promise<void> {
  const seconds = flag('seconds', 3);
  const service = await startService();
  try {
    const world = await makeRequestsWorld(service);
    const floor = await startFloor(service);
    say(`  ${'request'.padEnd(28)} CPU ms: service  ClickHouse  Postgres; p50, p99 ms; a second`);
    const bare = { GET: () => ({ method: 'GET', path: '/constant' }) as RequestInput };
    await measure('bare Express', {
      target: floor,
      next: bare.GET,
      seconds,
      cpu: () => ({ node: cpuOfTree([floor.pid]) }),
    });
    const [id] = world.customer_ids;
    await measure('bare Express, record by id', {
      target: floor,
      next: () => ({ method: 'GET', path: `/customers/${id}` }),
      seconds,
      cpu: () => ({ node: cpuOfTree([floor.pid]) }),
    });
    const wanted = process.argv
      .find((argument) => argument.startsWith('--kinds='))
      ?.slice(8)
      .split(',');
    for (const [kind, build] of Object.entries(REQUESTS)) {
      if (wanted && !wanted.includes(kind)) continue;
      const random = seeded(7);
      await measure(kind, { target: service, next: () => build(world, random), seconds, cpu: () => cpuOf(service) });
    }
    floor.stop();
  } finally {
    await service.stop();
  }
}

type Cpu = { node: number; clickhouse?: number; postgres?: number };

function cpuOf(service: EmbeddedService): Cpu {
  const { total, clickhouse, postgres } = service.cpu();
  return { node: total - clickhouse - postgres, clickhouse, postgres };
}

type Measured = { target: Target; next: () => RequestInput; seconds: number; cpu: () => Cpu };

async function measure(kind: string, { target, next, seconds, cpu }: Measured): Promise<void> {
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
  await all(1000, false);
  const before = cpu();
  const began = performance.now();
  await all(seconds * 1000, true);
  const elapsed_s = (performance.now() - began) / 1000;
  const after = cpu();
  const of = (part: keyof Cpu) =>
    after[part] === undefined ? '' : fixed(((after[part]! - before[part]!) * 1000) / took.length, 2);
  say(
    `  ${kind.padEnd(28)} ${of('node').padStart(15)} ${of('clickhouse').padStart(11)} ${of('postgres').padStart(9)}; ` +
      `${fixed(quantile(took, 0.5))}, ${fixed(quantile(took, 0.99))}; ${fixed(took.length / elapsed_s, 0)}`,
  );
  agent.destroy();
}

async function startFloor(service: EmbeddedService) {
  const { DATABASE_URL } = await service.call<{ DATABASE_URL: string }>({ what: 'store_urls' });
  const child = fork(fileURLToPath(new URL('./express-floor.ts', import.meta.url)), [DATABASE_URL], {
    execPath: NODE,
    execArgv: NODE_FLAGS,
  });
  const { url } = await new Promise<{ url: string }>((resolve) => child.once('message', resolve as never));
  return { url, api_key: '', pid: child.pid!, stop: () => child.disconnect() };
}
