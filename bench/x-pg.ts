import { mkdtempSync, rmSync } from 'node:fs';
import { startEmbedded } from '../storage/embedded/stack.ts';
import { connectPostgres } from '../storage/postgres.ts';
import { cpuOfTree } from './cpu.ts';
import { bulkBodies } from './workload.ts';
const dir = mkdtempSync('/tmp/bx/');
const emb = await startEmbedded({ dir, log: () => {}, clickhouse_url: 'http://x' });
const pg = connectPostgres(emb.postgres_url);
const pid = emb.pids();
const N = 300000;
const bodies = [...bulkBodies(1, N, 1000)];
for (let rep = 0; rep < 3; rep++)
  for (const mode of ['external', 'extended lz4']) {
    await pg.raw('drop table if exists l');
    await pg.raw('create table l (o bigint primary key, b bytea not null)');
    try {
      await pg.raw(
        mode === 'external'
          ? 'alter table l alter column b set storage external'
          : 'alter table l alter column b set compression lz4',
      );
    } catch (e) {
      console.log(String(e).slice(0, 200));
      continue;
    }
    const conn: any = await pg.client.acquireConnection();
    const c0 = cpuOfTree(pid),
      m0 = process.cpuUsage();
    for (let i = 0; i < bodies.length; i += 2)
      await conn.query({ text: 'insert into l values ($1,$2),($3,$4)', values: [i, bodies[i], i + 1, bodies[i + 1]] });
    const c1 = cpuOfTree(pid),
      m1 = process.cpuUsage(m0);
    for (let i = 0; i < bodies.length; i += 30) await conn.query({ text: 'delete from l where o < $1', values: [i] });
    const c2 = cpuOfTree(pid);
    const { rows } = await conn.query("select pg_total_relation_size('l') s");
    await new Promise((r) => setTimeout(r, 3000));
    const c3 = cpuOfTree(pid);
    await pg.client.releaseConnection(conn);
    console.log(
      mode,
      'pg insert',
      (((c1 - c0) / N) * 1e6).toFixed(2),
      'node',
      ((m1.user + m1.system) / N).toFixed(2),
      'delete',
      (((c2 - c1) / N) * 1e6).toFixed(2),
      'after 3s',
      (((c3 - c2) / N) * 1e6).toFixed(2),
      rows[0].s,
    );
  }
await pg.destroy();
await emb.stop();
rmSync(dir, { recursive: true, force: true });
