/**
 * One thread renews the leases of all consumers of this process (lease-thread.mjs), each over its own connection. A single thread suffices:
 * starting one and loading the driver costs more than an hour of renewals. It starts with the first consumer and remains for later ones. If
 * it dies, the first consumer that tends its leases starts another, which renews for all.
 */
import { Worker } from 'node:worker_threads';

export type Holder = {
  readonly url: string;
  readonly id: string;
  readonly lease_ms: number;
  readonly alive_ms: number;
  /** Memory that both threads access (leases.ts). */
  readonly shared: BigInt64Array;
};

/** Message of the thread about a holder: either its leases were renewed for the first time, or their renewal has ended, with the error. */
type LeaseThreadMessage = {
  readonly key: number;
  readonly ended: boolean;
  readonly failure?: { readonly message: string };
};

/** Time after which the thread closes an unresponsive connection, and after which an unresponsive thread is terminated. */
const STOPPED_WITHIN_MS = 2_000;
const ENDED_AFTER_MS = STOPPED_WITHIN_MS + 500;

const holders = new Set<Holder>();
let current: LeaseThread | null = null;

/** Resolves after the first renewal. A holder whose start failed is not renewed later. */
export async function startRenewing(holder: Holder): Promise<void> {
  await continueRenewing(holder).catch((error) => {
    holders.delete(holder);
    throw error;
  });
}

/** Starts the renewal again if it has ended; has no effect while the leases are renewed. */
export async function continueRenewing(holder: Holder): Promise<void> {
  holders.add(holder);
  if (current?.ending) await current.ending;
  if (!holders.has(holder)) return; // The holder was stopped meanwhile.
  current ??= new LeaseThread();
  await current.renew(holder);
}

/** Resolves when the thread has finished with the holder. */
export async function stopRenewing(holder: Holder): Promise<void> {
  holders.delete(holder);
  await current?.stop(holder);
}

class LeaseThread {
  /** Set while an unresponsive thread is being terminated. */
  ending: Promise<unknown> | null = null;
  readonly #worker: Worker;
  readonly #renewals = new Map<Holder, PendingRenewal>();
  #keys = 0;
  #waiting = 0;

  constructor() {
    this.#worker = new Worker(new URL('./lease-thread.mjs', import.meta.url), {
      workerData: { stopped_within_ms: STOPPED_WITHIN_MS },
      // The thread is plain JavaScript and small, so it needs neither the TypeScript loader nor the large heap of the main thread.
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 },
    });
    let why = new Error('the thread that renews leases has ended');
    this.#worker.on('message', (reply: LeaseThreadMessage) => this.#hear(reply));
    this.#worker.once('error', (error: Error) => (why = error));
    this.#worker.once('exit', () => {
      if (current === this) current = null;
      for (const holder of [...this.#renewals.keys()]) this.#end(holder, why);
    });
    for (const holder of holders) this.#begin(holder);
  }

  async renew(holder: Holder): Promise<void> {
    await this.#wait((this.#renewals.get(holder) ?? this.#begin(holder)).first);
  }

  async stop(holder: Holder): Promise<void> {
    const renewal = this.#renewals.get(holder);
    if (!renewal) return;
    // If the main loop was busy, the thread's reply may be waiting: `setImmediate` lets it arrive before the thread is terminated.
    const late = setTimeout(() => setImmediate(() => this.#renewals.has(holder) && this.#giveUp()), ENDED_AFTER_MS);
    this.#worker.postMessage({ key: renewal.key });
    await this.#wait(renewal.over);
    clearTimeout(late);
  }

  #begin(holder: Holder): PendingRenewal {
    const renewal = new PendingRenewal(++this.#keys);
    this.#renewals.set(holder, renewal);
    this.#worker.postMessage({ key: renewal.key, holder });
    return renewal;
  }

  #hear({ key, ended, failure }: LeaseThreadMessage): void {
    const [holder, renewal] = [...this.#renewals].find(([, each]) => each.key === key) ?? [];
    if (!holder || !renewal) return;
    if (ended) this.#end(holder, failure ? Object.assign(new Error(failure.message), failure) : new Error('stopped'));
    else renewal.begin();
  }

  #end(holder: Holder, why: Error): void {
    this.#renewals.get(holder)?.end(why);
    this.#renewals.delete(holder);
  }

  #giveUp(): void {
    this.ending ??= this.#worker.terminate();
  }

  /** Waits for the thread. The process stays alive while a caller waits, but not because of the thread itself. */
  async #wait(what: Promise<unknown>): Promise<void> {
    if (this.#waiting++ === 0) this.#worker.ref();
    try {
      await what;
    } finally {
      if (--this.#waiting === 0) this.#worker.unref();
    }
  }
}

class PendingRenewal {
  readonly key: number;
  readonly first: Promise<void>;
  readonly over: Promise<Error>;
  begin!: () => void;
  end!: (why: Error) => void;

  constructor(key: number) {
    this.key = key;
    this.over = new Promise((resolve) => (this.end = resolve));
    this.first = new Promise((resolve, reject) => {
      this.begin = resolve;
      void this.over.then(reject);
    });
    this.first.catch(() => {}); // If another holder's consumer started the thread, nothing awaits this promise; this holder's consumer tries again.
  }
}
