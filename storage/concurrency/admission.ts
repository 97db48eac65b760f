/**
 * Bounds the requests that run at once by time and not by number. A few may always run. Others may run while the process has capacity left,
 * because a request that waits for a lock or a disk costs nothing. The rest waits in a fair queue. A request that would wait too long is
 * refused at once (docs/decisions/0030-overload.md).
 */
import { AsyncResource } from 'node:async_hooks';
import { type Asker, FairQueue } from './fair-queue.ts';

export type AdmissionLimits = {
  /**
   * Number of requests that run at once however busy the process is. As many again may run of tenants without a running request, so the
   * requests of one tenant delay no other, however long they take.
   */
  readonly at_once_min: number;
  /** Longest expected wait of a request in a burst: the first second of a queue, or a short queue. */
  readonly burst_ms: number;
  /** Longest expected wait of any other request. */
  readonly lasting_ms: number;
};

type AdmissionSensors = {
  /** Milliseconds of a monotonic clock. */
  now(): number;
  /** Begins a measurement; the result states whether the process was short of capacity since its last call. */
  watchShortage(): () => boolean;
};

type AdmittedRequest = {
  getAsker(): Asker;
  /** Calls `end` when the request has its answer, or its caller has left. */
  onEnd(end: () => void): void;
  run(): void;
  refuse(reason: { readonly retry_after_seconds: number }): void;
};

type Ticket = Pick<AdmittedRequest, 'run' | 'refuse' | 'getAsker'> & {
  asker?: Asker;
  /** Whether it runs although no place was free. */
  isFirst?: boolean;
  since_ms: number;
};

/** Age of a queue from which it is no burst. */
const BURST_MS = 1_000;
/** Number of waiting requests up to which a queue is a burst: as many clients may each send one request after the other. */
const CLIENTS = 128;
/** A request that has waited for so long is refused, because the expectation was wrong. */
const WAIT_MAX_MS = 10_000;
/** Interval at which the number of requests at once is adapted. */
const TICK_MS = 100;
/** A request that runs for longer does not count. It streams a file, or waits for another service. */
const LONG_MS = 5_000;

/** Mean interval between two requests that leave the queue to run; the newest interval has a tenth of the weight. */
class Pace {
  #last_ms = 0;
  #sum_ms = 0;
  #weight = 0;

  get mean_ms(): number {
    return this.#weight === 0 ? 0 : this.#sum_ms / this.#weight;
  }

  restart(now: number): void {
    this.#last_ms = now;
    this.#sum_ms = this.#weight = 0;
  }

  count(now: number): void {
    // One pause of the process does not refuse the requests after it.
    const interval_ms = Math.min(now - this.#last_ms, INTERVAL_MAX_MS);
    this.#last_ms = now;
    this.#sum_ms += (interval_ms - this.#sum_ms) * NEWEST_WEIGHT;
    this.#weight += (1 - this.#weight) * NEWEST_WEIGHT;
  }
}

const NEWEST_WEIGHT = 0.1;
const INTERVAL_MAX_MS = 1_000;

export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #sensors: AdmissionSensors;
  readonly #queue = new FairQueue<Ticket>();
  /**
   * In the order of their start. A Set would retain the tickets that left: V8 links its former tables, so one of them that is old keeps all later
   * ones, with the requests in them, until a full garbage collection.
   */
  readonly #running: Ticket[] = [];
  /** Number of running requests that had no place, because they are the first ones of their tenants. They take none from others. */
  #firsts = 0;
  #at_once: number;
  /** Instant since which the queue is not empty. */
  #queued_since_ms = 0;
  readonly #pace = new Pace();
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
  enter({ getAsker, onEnd, run, refuse }: AdmittedRequest): void {
    const now = this.#sensors.now();
    const ticket: Ticket = { getAsker, run, refuse, since_ms: now };
    const hasPlace = this.#placesTaken < this.#at_once || this.#isFirstOfTenant(ticket);
    if (!hasPlace && !this.#wait(ticket)) return;
    onEnd(() => this.#leave(ticket));
    if (hasPlace) this.#run(ticket, now);
  }

  /** While such a place is free, no tenant in the queue is without a running request (`#takeNext`). */
  #isFirstOfTenant(ticket: Ticket): boolean {
    if (this.#firsts >= this.#limits.at_once_min) return false;
    const asker = getAskerOnce(ticket);
    for (const other of this.#running) if (getAskerOnce(other) === asker) return false;
    ticket.isFirst = true;
    return true;
  }

  get #placesTaken(): number {
    return this.#running.length - this.#firsts;
  }

  /** Returns whether the request was running. */
  #free(ticket: Ticket): boolean {
    const at = this.#running.indexOf(ticket);
    if (at < 0) return false;
    this.#running.splice(at, 1);
    if (ticket.isFirst) this.#firsts--;
    return true;
  }

  /** Returns whether the request waits; otherwise it was refused. */
  #wait(ticket: Ticket): boolean {
    const asker = getAskerOnce(ticket);
    if (this.#queue.size === 0) {
      this.#queued_since_ms = ticket.since_ms;
      this.#pace.restart(ticket.since_ms);
    }
    const isBurst = ticket.since_ms - this.#queued_since_ms < BURST_MS || this.#queue.size < CLIENTS;
    const expected_ms = this.#expectWait(asker);
    if (expected_ms > (isBurst ? this.#limits.burst_ms : this.#limits.lasting_ms)) {
      ticket.refuse(toReason(expected_ms));
      return false;
    }
    // The request would otherwise run in the context of the one whose end it waits for, and act for that caller.
    ticket.run = AsyncResource.bind(ticket.run);
    this.#queue.add(asker, ticket);
    this.#startTicking();
    return true;
  }

  /** Each other tenant is served at most once for each request of this tenant. */
  #expectWait(asker: Asker): number {
    const own = this.#queue.count(asker);
    const askers = this.#queue.askers + (own === 0 ? 1 : 0);
    return Math.min((own + 1) * askers, this.#queue.size + 1) * this.#pace.mean_ms;
  }

  #run(ticket: Ticket, now: number): void {
    ticket.since_ms = now;
    this.#running.push(ticket);
    if (ticket.isFirst) this.#firsts++;
    ticket.run();
  }

  #leave(ticket: Ticket): void {
    if (this.#free(ticket)) this.#runWaiting();
    else if (ticket.asker !== undefined) this.#queue.remove((one) => one === ticket, [ticket.asker]);
  }

  #runWaiting(): void {
    while (this.#queue.size > 0) {
      const ticket = this.#takeNext();
      if (ticket === undefined) return;
      const now = this.#sensors.now();
      this.#pace.count(now);
      this.#run(ticket, now);
    }
  }

  /** Takes the next request that has a place, or else the next one whose tenant has no running request, while there is a place for it. */
  #takeNext(): Ticket | undefined {
    if (this.#placesTaken < this.#at_once) return this.#queue.take();
    if (this.#firsts >= this.#limits.at_once_min) return undefined;
    const askers = new Set(this.#running.map(getAskerOnce));
    const ticket = this.#queue.take((asker) => !askers.has(asker));
    if (ticket !== undefined) ticket.isFirst = true;
    return ticket;
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

  /** By one step: the effect of more requests on the stores shows only when they reach them. */
  #computeChange(isShort: boolean): number {
    const step = this.#limits.at_once_min;
    // While more requests run than may, the shortage is that of the earlier number.
    if (isShort) return this.#placesTaken <= this.#at_once ? -step : 0;
    if (this.#queue.size > 0) return step;
    return this.#placesTaken <= this.#at_once - step ? -step : 0;
  }

  /** Adapts the number of requests at once, refuses those that have waited too long, and runs those that now may. */
  adapt(isShort: boolean): void {
    const now = this.#sensors.now();
    while (this.#running[0] && now - this.#running[0].since_ms >= LONG_MS) this.#free(this.#running[0]);
    this.#at_once = Math.max(this.#limits.at_once_min, this.#at_once + this.#computeChange(isShort));
    const late = this.#queue.remove(({ since_ms }) => now - since_ms >= WAIT_MAX_MS);
    for (const { refuse } of late) refuse(toReason(WAIT_MAX_MS));
    this.#runWaiting();
  }
}

function getAskerOnce(ticket: Ticket): Asker {
  ticket.asker ??= ticket.getAsker();
  return ticket.asker;
}

function toReason(wait_ms: number) {
  return { retry_after_seconds: Math.min(Math.max(Math.ceil(wait_ms / 1_000), 1), 10) };
}
