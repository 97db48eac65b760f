/** Child process that inserts the raw events of a workload by the client, as JSONEachRow; its CPU time counts. */
import { Agent } from 'node:http';
import { createClient } from '@clickhouse/client';
import { bulkBodies } from './workload.ts';

export type RawInsert = { url: string; seed: number; total: number; rows_per_insert: number; connections: number };

type Event = {
  event_id: string;
  event_name: string;
  external_customer_id: string;
  timestamp: string;
  source: string;
  properties: object;
};

process.on('disconnect', () => process.exit(0));
process.send!({ ready: true });
for (;;) {
  const work = (await told()) as RawInsert;
  const client = createClient({ url: work.url, http_agent: new Agent({ keepAlive: true }) });
  const batches = batchesOf(work);
  process.send!({ prepared: true });
  await told();
  let next = 0;
  const insert = async () => {
    while (next < batches.length) {
      const values = batches[next++]!;
      await client.insert({
        table: 'bench_raw',
        values,
        format: 'JSONEachRow',
        clickhouse_settings: { async_insert: 0 },
      });
    }
  };
  await Promise.all(Array.from({ length: work.connections }, insert));
  await client.close();
  process.send!({ value: null });
}

function told(): Promise<unknown> {
  return new Promise((resolve) => process.once('message', resolve));
}

/** Prepared rows for the client, so that parsing and converting them is not measured. */
function batchesOf({ seed, total, rows_per_insert }: RawInsert): object[][] {
  const batches: object[][] = [];
  for (const body of bulkBodies(seed, total, rows_per_insert)) {
    const { events } = JSON.parse(body.toString()) as { events: Event[] };
    batches.push(
      events.map(({ properties, timestamp, ...event }) => ({
        tenant_id: 'tenant',
        environment_id: 'environment',
        ...event,
        timestamp: timestamp.replace('T', ' ').replace('Z', ''),
        properties: JSON.stringify(properties),
      })),
    );
  }
  return batches;
}
