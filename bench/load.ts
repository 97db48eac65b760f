/**
 * Child process that generates load: it builds the bodies first and then sends them, so its CPU time is separate from that of the service.
 */
import { Agent, request } from 'node:http';
import { bulkBodies, type WorkloadOptions } from './workload.ts';

export type Load = {
  url: string;
  api_key: string;
  /** Seed of the workload, whose bodies are built before the measurement starts. */
  seed: number;
  total: number;
  size: number;
  connections: number;
  /** Events per second; if absent, as fast as the service accepts them. */
  rate?: number;
  workload?: WorkloadOptions;
};

export type Loaded = { elapsed_ms: number; latencies_ms: number[] };

process.on('disconnect', () => process.exit(0));
process.send!({ ready: true });
for (;;) {
  const load = (await told()) as Load;
  await send(load).then(
    (value) => process.send!({ value }),
    (error: Error) => process.send!({ error: error.stack ?? String(error) }),
  );
}

function told(): Promise<unknown> {
  return new Promise((resolve) => process.once('message', resolve));
}

async function send(load: Load): Promise<Loaded> {
  const bodies = [...bulkBodies(load.seed, load.total, load.size, load.workload)];
  process.send!({ prepared: true });
  await told();
  const agent = new Agent({ keepAlive: true, maxSockets: load.connections });
  const latencies_ms: number[] = [];
  const began = performance.now();
  let next = 0;
  const worker = async () => {
    while (next < bodies.length) {
      const index = next++;
      const due = load.rate === undefined ? 0 : began + ((index * load.size) / load.rate) * 1000;
      const early = due - performance.now();
      if (early > 0) await new Promise((resolve) => setTimeout(resolve, early));
      const sent = performance.now();
      await post(bodies[index]!, { load, agent });
      latencies_ms.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: load.connections }, worker));
  agent.destroy();
  return { elapsed_ms: performance.now() - began, latencies_ms };
}

function post(body: Buffer, { load, agent }: { load: Load; agent: Agent }): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'x-api-key': load.api_key, 'content-type': 'application/json', 'content-length': body.length };
    const sending = request(`${load.url}/v1/events/bulk`, { method: 'POST', agent, headers }, (response) => {
      response.resume();
      response.on('end', () => {
        if (response.statusCode === 202) resolve();
        else reject(new Error(`the service answered ${response.statusCode}`));
      });
    });
    sending.on('error', reject);
    sending.end(body);
  });
}
