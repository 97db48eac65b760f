// The thread of leases.ts: renews what its consumer holds, whatever the main loop is busy with. Plain JavaScript,
// because a thread with the TypeScript loader takes longer to start than a short lease lasts.
import { parentPort, workerData } from 'node:worker_threads';
import pg from 'pg';

const { url, id, lease_ms, alive_ms, shared } = workerData;
const EVERY_MS = lease_ms / 3;
const AGAIN_MS = Math.min(500, lease_ms / 6);

// The first statement says that we are there, so that others leave us our share. What has run out is not renewed: somebody may
// have had it meanwhile. Rows are taken in the order in which appends take them: in another, each could wait for the other.
const RENEW = `
  with alive as (
    insert into log_consumers (id, seen_until) values ($1, now() + $2 * interval '1 millisecond')
    on conflict (id) do update set seen_until = excluded.seen_until),
  ours as (select partition from log_partitions where owner = $1 order by partition for update)
  update log_partitions p set lease_until = now() + $2 * interval '1 millisecond' from ours
   where p.partition = ours.partition and p.lease_until > now() returning p.partition`;

let client = null;
let stopping = false;
let wake = () => {};

parentPort.on('message', () => {
  stopping = true;
  wake();
});

async function keep() {
  for (let told = false; !stopping; ) {
    let pause_ms = EVERY_MS;
    try {
      if (isMainAlive()) await renew();
      if (!told) parentPort.postMessage('renewed');
      told = true;
    } catch (error) {
      await disconnect();
      // At the start the consumer hears why. Later leases run out by themselves, and the next round tries again.
      if (!told) throw error;
      pause_ms = AGAIN_MS;
    }
    if (!stopping) await pause(pause_ms);
  }
  await disconnect();
  parentPort.close();
}

function isMainAlive() {
  return process.hrtime.bigint() - Atomics.load(shared, 0) < BigInt(alive_ms) * 1_000_000n;
}

async function renew() {
  client ??= await connect();
  // Before the server has it: we must not think a lease longer than it is.
  const asked = process.hrtime.bigint();
  const { rows } = await client.query(RENEW, [id, lease_ms]);
  for (const { partition } of rows) {
    if (partition + 1 < shared.length) Atomics.store(shared, partition + 1, asked + BigInt(lease_ms) * 1_000_000n);
  }
}

async function connect() {
  const made = new pg.Client({
    connectionString: url,
    application_name: 'farthing leases',
    connectionTimeoutMillis: Math.max(lease_ms, 5_000),
    query_timeout: lease_ms,
  });
  made.on('error', () => {}); // The next statement fails by it.
  await made.connect();
  return made;
}

// A server that hangs would never answer the farewell.
async function disconnect() {
  const gone = client;
  client = null;
  if (!gone) return;
  const late = setTimeout(() => gone.connection.stream.destroy(), 200);
  await gone.end().catch(() => {});
  clearTimeout(late);
}

function pause(ms) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    wake = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}

await keep();
