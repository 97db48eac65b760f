import { spawn } from 'node:child_process';
import { readConfig } from '../config.ts';
import { startService } from '../service.ts';
import { cpuOfTree } from './cpu.ts';
import { bulkBodies, meterDefinitions } from './workload.ts';
import { rmSync } from 'node:fs';
const N = Number(process.argv[2] ?? 300000);
rmSync('/tmp/benchp2data', { recursive: true, force: true });
const s = await startService(readConfig({ PORT: '0', DATA_DIR: '/tmp/benchp2data', LOG_LEVEL: 'warn' }));
const H = { 'x-api-key': s.api_key!, 'content-type': 'application/json' };
for (const m of meterDefinitions()) {
  const r = await fetch(s.url + '/v1/meters', {
    method: 'POST',
    headers: H,
    body: JSON.stringify({ name: 'm', ...m }),
  });
  if (r.status !== 201) throw new Error(await r.text());
}
await new Promise((r) => setTimeout(r, 2000));
const bodies = [...bulkBodies(1, N, 1000)];
if (process.env.PROF) {
  const { Session } = await import('node:inspector/promises');
  var ses = new Session();
  ses.connect();
  await ses.post('Profiler.enable');
  await ses.post('Profiler.start');
}
const c0 = cpuOfTree([process.pid]);
const t0 = performance.now();
const m0 = process.cpuUsage();
let i = 0;
async function worker() {
  while (i < bodies.length) {
    const b = bodies[i++]!;
    const r = await fetch(s.url + '/v1/events/bulk', { method: 'POST', headers: H, body: b });
    if (r.status !== 202) throw new Error(r.status + (await r.text()));
    await r.arrayBuffer();
  }
}
await Promise.all([worker(), worker(), worker(), worker()]);
const t1 = performance.now();
const c1 = cpuOfTree([process.pid]);
for (;;) {
  const lag = await s.services.log.lag();
  if (lag.every((l) => l.unprocessed_records === 0)) break;
  await new Promise((r) => setTimeout(r, 50));
}
const t2 = performance.now();
const c2 = cpuOfTree([process.pid]);
const m2 = process.cpuUsage(m0);
console.log({
  accept_us: ((c1 - c0) / N) * 1e6,
  accept_rate: (N / (t1 - t0)) * 1000,
  total_cpu_us: ((c2 - c0) / N) * 1e6,
  per_core: N / (c2 - c0),
  wall_rate: (N / (t2 - t0)) * 1000,
  main_us: (m2.user + m2.system) / N,
});
if (process.env.PROF) {
  const { profile } = await ses!.post('Profiler.stop');
  (await import('node:fs')).writeFileSync('/tmp/bp2.cpuprofile', JSON.stringify(profile));
}
const q = await s.services.clickhouse.query({ query: 'select count() as n from events', format: 'JSONEachRow' });
console.log(await q.json());
const b = await s.services.clickhouse.query({
  query: 'select sum(event_count) n, count() r from usage_buckets',
  format: 'JSONEachRow',
});
console.log(await b.json());
const pids = s.pids();
console.log('ch', (cpuOfTree([pids[0]!]) / N) * 1e6, 'pg', (cpuOfTree([pids[1]!]) / N) * 1e6);
await s.stop();
