/**
 * The thread that renews the leases of every consumer of this process (lease-thread.mjs), each over a connection of its own. One
 * for all of them: to start one, and to load the driver in it, costs more than an hour of renewing. It begins with the first
 * consumer and stays for the next. When it dies, whoever tends its leases first starts another, which renews for all.
 */
import { Worker } from 'node:worker_threads';

export type Holder = {
  readonly url: string;
  readonly id: string;
  readonly lease_ms: number;
  readonly alive_ms: number;
  /** Memory that both sides see (leases.ts). */
  readonly shared: BigInt64Array;
};

/** What the thread says of a holder: its leases were renewed for the first time, or they are renewed no more, and why. */
type LeaseThreadMessage = {
  readonly key: number;
  readonly ended: boolean;
  readonly failure?: { readonly message: string };
};

/** A connection that answers nothing is broken off by the thread after so long; a thread that says nothing itself is ended. */
const STOPPED_WITHIN_MS = 2_000;
const ENDED_AFTER_MS = STOPPED_WITHIN_MS + 500;

const holders = new Set<Holder>();
let current: LeaseThread | null = null;

/** Resolves when they were renewed for the first time. Whoever could not start is not renewed for later either. */
export async function startRenewing(holder: Holder): Promise<void> {
  await continueRenewing(holder).catch((error) => {
    holders.delete(holder);
    throw error;
  });
}

/** While they are renewed there is nothing to do. */
export async function continueRenewing(holder: Holder): Promise<void> {
  holders.add(holder);
  if (current?.ending) await current.ending;
  if (!holders.has(holder)) return; // It was stopped meanwhile.
  current ??= new LeaseThread();
  await current.renew(holder);
}

/** Resolves when the thread has nothing to do with them any more. */
export async function stopRenewing(holder: Holder): Promise<void> {
  holders.delete(holder);
  await current?.stop(holder);
}

class LeaseThread {
  /** Set when it did not do as it was told. */
  ending: Promise<unknown> | null = null;
  readonly #worker: Worker;
  readonly #renewals = new Map<Holder, PendingRenewal>();
  #keys = 0;
  #waiting = 0;

  constructor() {
    this.#worker = new Worker(new URL('./lease-thread.mjs', import.meta.url), {
      workerData: { stopped_within_ms: STOPPED_WITHIN_MS },
      // It is plain JavaScript and needs little: neither the compiler of ours nor our large young generation.
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
    // A main loop that was busy hears first what the thread has said meanwhile.
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

  /** The process stays for who waits for the thread, and not for the thread. */
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
    this.first.catch(() => {}); // Where another has begun it, nobody waits; its own consumer asks again.
  }
}
