// The thread of lease-renewals.ts: renews the leases of the consumers of its process, however busy the main loop is.
// Each consumer has its own loop and connection here, so none waits for another. This file is plain JavaScript, because
// a thread with the TypeScript loader takes longer to start than a short lease lasts.
import { parentPort, workerData } from 'node:worker_threads';
import pg from 'pg';

// The statement first registers this consumer, so that other consumers leave it a fair share. Expired leases are not
// renewed, because another consumer may have had the partition since. Rows are locked in the order of appends, because
// another order could deadlock.
const RENEW = `
  with alive as (
    insert into log_consumers (id, seen_until) values ($1, now() + $2 * interval '1 millisecond')
    on conflict (id) do update set seen_until = excluded.seen_until),
  ours as (select partition from log_partitions where owner = $1 order by partition for update)
  update log_partitions p set lease_until = now() + $2 * interval '1 millisecond' from ours
   where p.partition = ours.partition and p.lease_until > now() returning p.partition`;

const renewals = new Map();

// The first message with a key starts the renewal for a holder; the second, without a holder, stops it.
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
        // A failure of the first renewal is reported to the consumer. A later failure is retried in the next round, and
        // the leases expire meanwhile.
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
    // If the loop still waits for the server after the timeout, closing the connection fails its statement and ends it.
    setTimeout(() => this.#breakOff(), workerData.stopped_within_ms).unref();
  }

  #isMainAlive() {
    const { shared, alive_ms } = this.#holder;
    return process.hrtime.bigint() - Atomics.load(shared, 0) < BigInt(alive_ms) * 1_000_000n;
  }

  async #renew() {
    const { id, lease_ms, shared } = this.#holder;
    if (!this.#client) await this.#connect();
    // The time before the request is used, so that this process never assumes a longer lease than the server granted.
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
    this.#client.on('error', () => {}); // The error is reported by the next statement, which fails.
    await this.#client.connect();
  }

  // A server that hangs never answers the disconnect message, so the connection is closed after a timeout.
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

// Only the message of an error object is copied to another thread. Its other text fields, such as the code, are
// therefore copied as a plain object.
function asText(error) {
  const names = Object.getOwnPropertyNames(error).filter((name) => typeof error[name] === 'string');
  return Object.fromEntries(names.map((name) => [name, error[name]]));
}
