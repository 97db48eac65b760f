/**
 * Bounds the requests that run at once by time and not by number. A few may always run. Others may run while the process has capacity left,
 * because a request that waits for a lock or a disk costs nothing. The rest waits in a fair queue. A request that would wait too long is
 * refused at once (docs/decisions/0030-overload.md).
 */
import { AsyncResource } from 'node:async_hooks';
import { type Asker, FairQueue } from './fair-queue.ts';

type WaitLimits = {
  /** Longest wait of a request that arrives in the first second of a queue, which absorbs bursts. */
  readonly burst_ms: number;
  /** Longest wait of a request that arrives later. */
  readonly lasting_ms: number;
};

export type AdmissionLimits = {
  /** Number of requests that run at once however busy the process is. */
  readonly at_once_min: number;
  readonly wait: WaitLimits;
};

type AdmissionSensors = {
  /** Milliseconds of a monotonic clock. */
  now(): number;
  /** Begins a measurement; the returned function returns whether the process was short of capacity since the last call. */
  watchShortage(): () => boolean;
};

type AdmittedRequest = {
  getAsker(): Asker;
  /** Calls `end` when the request has its answer, or its caller has left. */
  onEnd(end: () => void): void;
  run(): void;
  refuse(reason: { readonly retry_after_seconds: number }): void;
};

type Ticket = Pick<AdmittedRequest, 'run' | 'refuse'> & { since_ms: number; wait_max_ms: number };

/** Age of a queue from which it is no burst. */
const BURST_MS = 1_000;
/** Interval at which the number of requests at once is adapted. */
const TICK_MS = 100;
/** A request that runs for longer does not count. It streams a file, or waits for another service. */
const LONG_MS = 5_000;
/** Weight of the newest interval between two requests that leave the queue. */
const PACE_WEIGHT = 0.1;

export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #sensors: AdmissionSensors;
  readonly #queue = new FairQueue<Ticket>();
  /** In the order of their start. */
  readonly #running = new Set<Ticket>();
  #at_once: number;
  /** Instant since which the queue is not empty. */
  #queued_since_ms = 0;
  #last_taken_ms = 0;
  /** Mean milliseconds between two requests that leave the queue to run. */
  #pace_ms = 0;
  #isTicking = false;

  constructor(limits: AdmissionLimits, sensors: AdmissionSensors) {
    this.#limits = limits;
    this.#sensors = sensors;
    this.#at_once = limits.at_once_min;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** Runs the request now or later, or refuses it. */
  enter(request: AdmittedRequest): void {
    const now = this.#sensors.now();
    const ticket: Ticket = { run: request.run, refuse: request.refuse, since_ms: now, wait_max_ms: 0 };
    if (this.#running.size >= this.#at_once) return this.#wait(ticket, request);
    request.onEnd(() => this.#leave(ticket));
    this.#run(ticket, now);
  }

  #wait(ticket: Ticket, request: AdmittedRequest): void {
    const asker = request.getAsker();
    if (this.#queue.size === 0) {
      this.#queued_since_ms = this.#last_taken_ms = ticket.since_ms;
      this.#pace_ms = 0;
    }
    const isBurst = ticket.since_ms - this.#queued_since_ms < BURST_MS;
    ticket.wait_max_ms = isBurst ? this.#limits.wait.burst_ms : this.#limits.wait.lasting_ms;
    const expected_ms = this.#expectWait(asker);
    // The expectation is a mean, so half of the bound remains for requests that take longer.
    if (expected_ms > ticket.wait_max_ms / 2) return request.refuse(toReason(expected_ms));
    // The request would otherwise run in the context of the one whose end it waits for, and act for that caller.
    ticket.run = AsyncResource.bind(request.run);
    this.#queue.add(asker, ticket);
    request.onEnd(() => {
      if (!this.#leave(ticket)) this.#queue.remove((one) => one === ticket, [asker]);
    });
    this.#startTicking();
  }

  /** Each other tenant is served once for each request of this tenant. */
  #expectWait(asker: Asker): number {
    const own = this.#queue.count(asker);
    const askers = this.#queue.askers + (own === 0 ? 1 : 0);
    return (own + 1) * askers * this.#pace_ms;
  }

  #run(ticket: Ticket, now: number): void {
    ticket.since_ms = now;
    this.#running.add(ticket);
    ticket.run();
  }

  #leave(ticket: Ticket): boolean {
    const hasRun = this.#running.delete(ticket);
    if (hasRun) this.#runWaiting();
    return hasRun;
  }

  #runWaiting(): void {
    while (this.#queue.size > 0 && this.#running.size < this.#at_once) {
      const now = this.#sensors.now();
      this.#pace_ms += (now - this.#last_taken_ms - this.#pace_ms) * PACE_WEIGHT;
      this.#last_taken_ms = now;
      this.#run(this.#queue.take()!, now);
    }
  }

  #startTicking(): void {
    if (this.#isTicking) return;
    this.#isTicking = true;
    const isShort = this.#sensors.watchShortage();
    const timer = setInterval(() => {
      this.adapt(isShort());
      if (this.#queue.size > 0 || this.#at_once > this.#limits.at_once_min) return;
      clearInterval(timer);
      this.#isTicking = false;
    }, TICK_MS).unref();
  }

  /** Adapts the number of requests at once, refuses those that have waited too long, and runs those that now may. */
  adapt(isShort: boolean): void {
    const now = this.#sensors.now();
    for (const ticket of this.#running) {
      if (now - ticket.since_ms < LONG_MS) break;
      this.#running.delete(ticket);
    }
    if (!isShort && this.#queue.size > 0) this.#at_once *= 2;
    else if (isShort || this.#running.size <= this.#at_once / 2)
      this.#at_once = Math.max(this.#limits.at_once_min, Math.floor(this.#at_once / 2));
    const late = this.#queue.remove(({ since_ms, wait_max_ms }) => now - since_ms >= wait_max_ms);
    for (const { refuse } of late) refuse(toReason(this.#limits.wait.lasting_ms));
    this.#runWaiting();
  }
}

function toReason(wait_ms: number) {
  return { retry_after_seconds: Math.min(Math.max(Math.ceil(wait_ms / 1_000), 1), 10) };
}
