// The thread of lease-renewals.ts: renews what the consumers of its process hold, whatever the main loop is busy with. Each has a loop
// and a connection of its own: what one waits for is nothing to the others. Plain JavaScript, because a thread with the TypeScript
// loader takes longer to start than a short lease lasts.
import { parentPort, workerData } from 'node:worker_threads';
import pg from 'pg';

// The first statement says that we are there, so that others leave us our share. What has run out is not renewed: somebody may
// have had it meanwhile. Rows are taken in the order in which appends take them: in another, each could wait for the other.
const RENEW = `
  with alive as (
    insert into log_consumers (id, seen_until) values ($1, now() + $2 * interval '1 millisecond')
    on conflict (id) do update set seen_until = excluded.seen_until),
  ours as (select partition from log_partitions where owner = $1 order by partition for update)
  update log_partitions p set lease_until = now() + $2 * interval '1 millisecond' from ours
   where p.partition = ours.partition and p.lease_until > now() returning p.partition`;

const renewals = new Map();

// The first message of a key tells whose leases they are, the second that it is over.
parentPort.on('message', ({ key, holder }) => {
  if (!holder) return renewals.get(key)?.stop();
  const renewal = new Renewal(holder);
  renewals.set(key, renewal);
  void renewal
    .keep(() => parentPort.postMessage({ key, ended: false }))
    .then(
      () => parentPort.postMessage({ key, ended: true }),
      (error) => parentPort.postMessage({ key, ended: true, failure: asText(error) }),
    )
    .finally(() => renewals.delete(key));
});

class Renewal {
  #client = null;
  #stopping = false;
  #wake = () => {};
  #holder;

  constructor(holder) {
    this.#holder = holder;
  }

  async keep(begun) {
    const { lease_ms } = this.#holder;
    for (let told = false; !this.#stopping; ) {
      let pause_ms = lease_ms / 3;
      try {
        if (this.#isMainAlive()) await this.#renew();
        if (!told) begun();
        told = true;
      } catch (error) {
        await this.#disconnect();
        // At the start the consumer hears why. Later leases run out by themselves, and the next round tries again.
        if (!told) throw error;
        pause_ms = Math.min(500, lease_ms / 6);
      }
      if (!this.#stopping) await this.#pause(pause_ms);
    }
    await this.#disconnect();
  }

  stop() {
    this.#stopping = true;
    this.#wake();
    // What it waits for then fails, and it ends.
    setTimeout(() => this.#breakOff(), workerData.stopped_within_ms).unref();
  }

  #isMainAlive() {
    const { shared, alive_ms } = this.#holder;
    return process.hrtime.bigint() - Atomics.load(shared, 0) < BigInt(alive_ms) * 1_000_000n;
  }

  async #renew() {
    const { id, lease_ms, shared } = this.#holder;
    if (!this.#client) await this.#connect();
    // Before the server has it: we must not think a lease longer than it is.
    const asked = process.hrtime.bigint();
    const { rows } = await this.#client.query(RENEW, [id, lease_ms]);
    for (const { partition } of rows) {
      if (partition + 1 < shared.length) Atomics.store(shared, partition + 1, asked + BigInt(lease_ms) * 1_000_000n);
    }
  }

  async #connect() {
    const { url, lease_ms } = this.#holder;
    this.#client = new pg.Client({
      connectionString: url,
      application_name: 'farthing leases',
      connectionTimeoutMillis: Math.max(lease_ms, 5_000),
      query_timeout: lease_ms,
    });
    this.#client.on('error', () => {}); // The next statement fails by it.
    await this.#client.connect();
  }

  // A server that hangs would never answer the farewell.
  async #disconnect() {
    if (!this.#client) return;
    const late = setTimeout(() => this.#breakOff(), 200);
    await this.#client.end().catch(() => {});
    clearTimeout(late);
    this.#client = null;
  }

  #breakOff() {
    this.#client?.connection.stream.destroy();
  }

  #pause(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

// Of an error only its message passes to another thread; what it is known by does so as text.
function asText(error) {
  const names = Object.getOwnPropertyNames(error).filter((name) => typeof error[name] === 'string');
  return Object.fromEntries(names.map((name) => [name, error[name]]));
}
