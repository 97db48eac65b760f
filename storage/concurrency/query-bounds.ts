/**
 * Bounds on the queries of tenants; billing reads without them. They limit the work of one query and the number of concurrent large
 * queries. They also cancel the work of a caller that disconnected.
 */
import { FarthingError, invalid } from '../../core/foundation/error.ts';
import type { CompiledMeter } from '../../core/metering/compiled-meter.ts';
import { computeMeterCost } from '../../core/metering/meter-cost.ts';
import { type Asker, FairQueue } from './fair-queue.ts';
import { Semaphore } from './semaphore.ts';

export type QueryBounds = {
  /** Tenant in whose queue the query waits for a slot. */
  readonly asker: Asker;
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
  /** Cost so far of all queries of one request. */
  readonly spent: { work: number };
};

/** Owner of a query: a tenant, with bounds; or billing for the tenant, without bounds. */
type QueryOwner = { readonly tenant_id: string; readonly bounds?: QueryBounds | undefined };

/** Maximum cost of a query, in units of core/metering/expression/work.ts: about 20 s of one core, or 4 million events of a plain meter. */
export const QUERY_WORK_MAX = 200_000_000;
/** Limit for all queries of one request. It is twice the limit of one query, because a query may have to be read twice. */
const REQUEST_WORK_MAX = 2 * QUERY_WORK_MAX;
/** Maximum of windows × customers × groups of an answer. */
export const QUERY_CELLS_MAX = 500_000;

/** Cost of reading one event, and of one character of its properties, in the units of QUERY_WORK_MAX. */
const EVENT_WORK = 40;
const CHARACTER_WORK = 0.05;

/** Limit of a small query: unaligned edges of an hour, or some thousand events. */
const SMALL_WORK = 500_000;

/** Cost so far of one read of raw events. Without bounds the limit is infinite. */
class QueryWork {
  readonly #limit: number;
  readonly #per_event: number;
  readonly #spent: { work: number };
  #work = 0;

  constructor(limit: number, meter: CompiledMeter, spent: { work: number } = { work: 0 }) {
    this.#limit = limit;
    this.#spent = spent;
    this.#per_event = EVENT_WORK + computeMeterCost(meter);
  }

  /** Counts one more event; returns whether the read may continue. */
  maySpend(characters: number): boolean {
    const work = this.#per_event + characters * CHARACTER_WORK;
    this.#work += work;
    this.#spent.work += work;
    return this.#work <= this.#limit;
  }
}

/**
 * Reads raw events for a query, first as a small one. A query that exceeds the small limit is stopped and restarted in a slot for large
 * queries. So a small query never waits for a large one, and no query holds a connection to the store while it waits. `read` returns
 * undefined if it was stopped. With `is_loaded` the events are in memory already: a small query then takes no slot, because it runs no
 * statement.
 */
export async function readWithin<Answer>(
  owner: QueryOwner & { readonly is_loaded?: boolean },
  meter: CompiledMeter,
  read: (work: QueryWork) => Promise<Answer | undefined>,
): Promise<Answer> {
  const { bounds, is_loaded = false } = owner;
  if (bounds === undefined) {
    const readAll = async () => (await read(new QueryWork(Number.POSITIVE_INFINITY, meter)))!;
    return is_loaded ? readAll() : BILLING_SLOTS.within(toSlotOwner(owner), readAll);
  }
  const readSmall = () => read(new QueryWork(limited(SMALL_WORK, bounds), meter, bounds.spent));
  const small = await (is_loaded ? readSmall() : runAsSmall(owner, readSmall));
  if (small !== undefined) return small;
  const large = await runAsLarge(owner, () =>
    read(new QueryWork(limited(QUERY_WORK_MAX, bounds), meter, bounds.spent)),
  );
  if (large !== undefined) return large;
  throw invalid(
    'start_time',
    'the question reads too many raw events: ask for a shorter range, fewer customers, fewer meters, or a meter as it counts, without filters and groups of its own',
    { work_max: QUERY_WORK_MAX },
  );
}

function limited(work: number, { spent }: QueryBounds): number {
  return Math.min(work, REQUEST_WORK_MAX - spent.work);
}

export function checkCells(count: number): void {
  if (count <= QUERY_CELLS_MAX) return;
  throw invalid(
    'window_size',
    `the answer is made of more than ${QUERY_CELLS_MAX} windows, customers and groups: ask for a shorter range, longer windows, fewer customers or fewer groups`,
    { cells_max: QUERY_CELLS_MAX },
  );
}

/**
 * Maximum size of an analytics answer, which is built completely before it is sent. One item counts for ten points. 100,000 points are
 * about 35 MB of JSON; 10,000 items are about 11 MB.
 */
const ANSWER_POINTS_MAX = 100_000;
const POINTS_PER_ITEM = 10;
/** Maximum number of groups of a query for one meter, whatever its windows. */
export const GROUPS_MAX = ANSWER_POINTS_MAX / POINTS_PER_ITEM;

/** Field that the caller can change to get a smaller answer. */
export type DividingField = 'group_by' | 'window_size' | 'external_customer_ids';

export function checkAnswer({ items, points }: { items: number; points: number }, field: DividingField): void {
  if (items * POINTS_PER_ITEM + points <= ANSWER_POINTS_MAX) return;
  throw invalid(
    field,
    `the answer has more than ${GROUPS_MAX} items, or ${ANSWER_POINTS_MAX} points, of which an item counts for ${POINTS_PER_ITEM}: ask for fewer groups, longer windows, a shorter range or fewer customers`,
    { items_max: GROUPS_MAX, points_max: ANSWER_POINTS_MAX },
  );
}

/** Throws if there are too many groups. It is called while the groups are read, so that a query stops at the first excess group. */
export function checkGroups(count: number): void {
  if (count <= GROUPS_MAX) return;
  throw invalid(
    'group_by',
    `there are more than ${GROUPS_MAX} groups: group by what has fewer values, or ask for a shorter range or fewer customers`,
    { groups_max: GROUPS_MAX },
  );
}

/** Maximum number of running queries, and of waiting queries per tenant (`asker`) and in total. A query above the limits is rejected. */
type QuerySlotLimits = {
  readonly at_once: number;
  readonly waiting_per_asker: number;
  readonly waiting: number;
  readonly wait_ms?: number;
};

type ReleaseSlot = () => void;
type WaitingQuery = { readonly give: (place: ReleaseSlot) => void };

const WAIT_MS = 15_000;

/** Limited slots for the queries of many tenants. */
export class QuerySlots {
  #taken = 0;
  readonly #queue = new FairQueue<WaitingQuery>();
  readonly #limits: QuerySlotLimits;

  constructor(limits: QuerySlotLimits) {
    this.#limits = limits;
  }

  async take({ asker, signal }: Pick<QueryBounds, 'asker' | 'signal'>): Promise<ReleaseSlot> {
    signal.throwIfAborted();
    if (this.#taken < this.#limits.at_once) return this.#given();
    if (this.#queue.count(asker) >= this.#limits.waiting_per_asker) throw busy('too_many_requests', 'of this tenant ');
    if (this.#queue.size >= this.#limits.waiting) throw busy('service_unavailable', '');
    return this.#wait(asker, signal);
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** Runs the work in a slot, which is released at its end. Without a signal, nothing cancels the wait. */
  async within<Made>(
    { asker, signal = new AbortController().signal }: { readonly asker: Asker; readonly signal?: AbortSignal },
    work: () => Promise<Made>,
  ): Promise<Made> {
    const leave = await this.take({ asker, signal });
    try {
      return await work();
    } finally {
      leave();
    }
  }

  #wait(asker: Asker, signal: AbortSignal): Promise<ReleaseSlot> {
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', giveUp);
      };
      const waiting: WaitingQuery = {
        give: (place) => {
          end();
          resolve(place);
        },
      };
      const giveUp = () => {
        end();
        this.#queue.remove((one) => one === waiting, [asker]);
        reject(signal.aborted ? signal.reason : busy('service_unavailable', ''));
      };
      const { wait_ms = WAIT_MS } = this.#limits;
      const timer = Number.isFinite(wait_ms) ? setTimeout(giveUp, wait_ms) : undefined;
      signal.addEventListener('abort', giveUp, { once: true });
      this.#queue.add(asker, waiting);
    });
  }

  #given(): ReleaseSlot {
    this.#taken++;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#taken--;
      this.#queue.take()?.give(this.#given());
    };
  }
}

/**
 * The slots together are fewer than the connections to the embedded engine, because the pipeline needs some. A small query takes
 * milliseconds, so the queries of a dashboard page, or one second of a busy tenant's queries, may wait. Waiting for hundreds of large
 * queries would take too long.
 */
const SMALL_SLOTS = new QuerySlots({ at_once: 2, waiting_per_asker: 256, waiting: 1_024 });
const LARGE_SLOTS = new QuerySlots({ at_once: 1, waiting_per_asker: 16, waiting: 64 });

/** Number of small statements of queries that wait for a slot. */
export function countWaitingStatements(): number {
  return SMALL_SLOTS.waiting;
}

/**
 * Billing's own statements have no bounds: an invoice may have any number of charges, and several are computed at a time. They wait without
 * a limit, so that few statements compete with the pipeline's writes. No tenant waits for all statements of another tenant.
 */
const BILLING_SLOTS = new QuerySlots({
  at_once: 4,
  waiting_per_asker: Number.POSITIVE_INFINITY,
  waiting: Number.POSITIVE_INFINITY,
  wait_ms: Number.POSITIVE_INFINITY,
});

/**
 * Runs a statement that reads pre-aggregated rows or few raw rows, in a slot for small statements. Only a few statements of one request are
 * in the queue at a time, however many it has.
 */
export function runAsSmall<Answer>({ tenant_id, bounds }: QueryOwner, work: () => Promise<Answer>): Promise<Answer> {
  if (bounds === undefined) return BILLING_SLOTS.within({ asker: tenant_id }, work);
  const own = slotsByRequest.get(bounds.spent) ?? new Semaphore(SMALL_SLOTS_PER_REQUEST);
  slotsByRequest.set(bounds.spent, own);
  return own.within(() => SMALL_SLOTS.within(bounds, work));
}

/** Semaphores that limit the concurrent statements of one request. */
const slotsByRequest = new WeakMap<QueryBounds['spent'], Semaphore>();
const SMALL_SLOTS_PER_REQUEST = 16;

/**
 * Runs a statement that reads an unknown number of raw events in a slot for large statements. Those of one request run one after the other.
 */
export function runAsLarge<Answer>(owner: QueryOwner, work: () => Promise<Answer>): Promise<Answer> {
  const { bounds } = owner;
  if (bounds === undefined) return BILLING_SLOTS.within(toSlotOwner(owner), work);
  const before = lastLarge.get(bounds.spent) ?? Promise.resolve();
  const own = before.then(() => LARGE_SLOTS.within(bounds, work));
  lastLarge.set(
    bounds.spent,
    own.catch(() => {}),
  );
  return own;
}

/** Last large statement of each request. */
const lastLarge = new WeakMap<QueryBounds['spent'], Promise<unknown>>();

const toSlotOwner = ({ tenant_id, bounds }: QueryOwner) => bounds ?? { asker: tenant_id };

function busy(code: 'too_many_requests' | 'service_unavailable', whose: string): FarthingError {
  return new FarthingError(code, `too many questions ${whose}are waiting: try again later, or ask for less`);
}
