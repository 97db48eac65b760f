/**
 * Questions of tenants have bounds that the reader of usage has not where billing asks: how much work one may be, how many
 * of those that read many raw events are worked on at once, and that nobody works for a caller who has gone.
 */
import { FarthingError, invalid } from '../../core/error.ts';
import type { CompiledMeter } from '../../core/metering/compiled-meter.ts';
import { computeMeterCost } from '../../core/metering/meter-cost.ts';
import { Semaphore } from '../semaphore.ts';
import type { Asker } from '../time-slicer.ts';

export type QueryBounds = {
  /** Whose questions wait for each other. */
  readonly asker: Asker;
  /** Called off: who asked has gone. */
  readonly signal: AbortSignal;
  /** What the questions of one request have cost so far, all together. */
  readonly spent: { work: number };
};

/** Who asks: a tenant with bounds, or we for it. */
export type QueryOwner = { readonly tenant_id: string; readonly bounds?: QueryBounds | undefined };

/** In units of core/metering/expression/work.ts: some 20 seconds of one core, four million raw events of a plain meter. */
export const QUESTION_WORK_MAX = 200_000_000;
/** Of all questions of one request. More than of one, so that one which has to be read twice is answered. */
const REQUEST_WORK_MAX = 2 * QUESTION_WORK_MAX;
/** What an answer may be made of: windows × customers × groups. */
export const QUESTION_CELLS_MAX = 500_000;

/** To read an event from the store, and a character of its properties. */
const EVENT_WORK = 40;
const CHARACTER_WORK = 0.05;

/** Up to here a question is small: ragged ends of an hour, or some thousand events. */
const SMALL_WORK = 500_000;

/** What one reading of raw events has cost so far. Without bounds nothing is counted. */
export class QuestionWork {
  readonly #limit: number;
  readonly #per_event: number;
  readonly #spent: { work: number };
  #work = 0;

  constructor(limit: number, meter: CompiledMeter, spent: { work: number } = { work: 0 }) {
    this.#limit = limit;
    this.#spent = spent;
    this.#per_event = EVENT_WORK + computeMeterCost(meter);
  }

  /** One more event was read. Whether the reading may go on. */
  maySpend(characters: number): boolean {
    const work = this.#per_event + characters * CHARACTER_WORK;
    this.#work += work;
    this.#spent.work += work;
    return this.#work <= this.#limit;
  }
}

/**
 * Reads raw events for a question, first as a small one. One that turns out not to be is broken off, and begins again among
 * the large ones: so a small question never waits for a large one, and none keeps a connection to the store while it waits.
 * `read` answers undefined when it was broken off.
 */
export async function readWithin<Answer>(
  asking: QueryOwner,
  meter: CompiledMeter,
  read: (work: QuestionWork) => Promise<Answer | undefined>,
): Promise<Answer> {
  const { bounds } = asking;
  if (bounds === undefined)
    return BILLING_SLOTS.within(
      toSlotOwner(asking),
      async () => (await read(new QuestionWork(Number.POSITIVE_INFINITY, meter)))!,
    );
  const small = await runAsSmall(asking, () =>
    read(new QuestionWork(limited(SMALL_WORK, bounds), meter, bounds.spent)),
  );
  if (small !== undefined) return small;
  const large = await runAsLarge(asking, () =>
    read(new QuestionWork(limited(QUESTION_WORK_MAX, bounds), meter, bounds.spent)),
  );
  if (large !== undefined) return large;
  throw invalid(
    'start_time',
    'the question reads too many raw events: ask for a shorter range, fewer customers, fewer meters, or a meter as it counts, without filters and groups of its own',
    { work_max: QUESTION_WORK_MAX },
  );
}

function limited(work: number, { spent }: QueryBounds): number {
  return Math.min(work, REQUEST_WORK_MAX - spent.work);
}

export function checkCells(count: number): void {
  if (count <= QUESTION_CELLS_MAX) return;
  throw invalid(
    'window_size',
    `the answer is made of more than ${QUESTION_CELLS_MAX} windows, customers and groups: ask for a shorter range, longer windows, fewer customers or fewer groups`,
    { cells_max: QUESTION_CELLS_MAX },
  );
}

/**
 * What the answer of analytics may hold, which is made whole before it is sent: points, of which an item says as much as ten. 100,000 of them are
 * some 35 MB of JSON; 10,000 items are some 11 MB.
 */
export const ANSWER_POINTS_MAX = 100_000;
const POINTS_PER_ITEM = 10;
/** How many groups a question of one meter may have, whatever their windows. */
export const GROUPS_MAX = ANSWER_POINTS_MAX / POINTS_PER_ITEM;

/** By which field it is made smaller. */
export type DividingField = 'group_by' | 'window_size' | 'external_customer_ids';

export function checkAnswer({ items, points }: { items: number; points: number }, field: DividingField): void {
  if (items * POINTS_PER_ITEM + points <= ANSWER_POINTS_MAX) return;
  throw invalid(
    field,
    `the answer has more than ${GROUPS_MAX} items, or ${ANSWER_POINTS_MAX} points, of which an item counts for ${POINTS_PER_ITEM}: ask for fewer groups, longer windows, a shorter range or fewer customers`,
    { items_max: GROUPS_MAX, points_max: ANSWER_POINTS_MAX },
  );
}

/** While they are read: what has too many is broken off at the first that is too much. */
export function checkGroups(count: number): void {
  if (count <= GROUPS_MAX) return;
  throw invalid(
    'group_by',
    `there are more than ${GROUPS_MAX} groups: group by what has fewer values, or ask for a shorter range or fewer customers`,
    { groups_max: GROUPS_MAX },
  );
}

/** How many are worked on at once, and how many may wait: of one asker, and of all. Whoever comes then is refused. */
export type QuerySlotLimits = {
  readonly at_once: number;
  readonly waiting_per_asker: number;
  readonly waiting: number;
  readonly wait_ms?: number;
};

/** Gives the place back. */
type ReleaseSlot = () => void;
type WaitingQuery = { readonly give: (place: ReleaseSlot) => void };

const WAIT_MS = 15_000;

/** Few places for many askers: the next one goes to the asker whose turn is the longest ago. */
export class QuerySlots {
  #taken = 0;
  readonly #waiting = new Map<Asker, WaitingQuery[]>();
  readonly #limits: QuerySlotLimits;

  constructor(limits: QuerySlotLimits) {
    this.#limits = limits;
  }

  async take({ asker, signal }: Pick<QueryBounds, 'asker' | 'signal'>): Promise<ReleaseSlot> {
    signal.throwIfAborted();
    if (this.#taken < this.#limits.at_once) return this.#given();
    const own = this.#waiting.get(asker) ?? [];
    if (own.length >= this.#limits.waiting_per_asker) throw busy('too_many_requests', 'of this tenant ');
    if (this.#count() >= this.#limits.waiting) throw busy('service_unavailable', '');
    return this.#wait(asker, signal);
  }

  /** The work of an asker, in a place that is given back with its end; nobody calls it off while it waits, unless there is a signal. */
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
        this.#forget(asker, waiting);
        reject(signal.aborted ? signal.reason : busy('service_unavailable', ''));
      };
      const { wait_ms = WAIT_MS } = this.#limits;
      const timer = Number.isFinite(wait_ms) ? setTimeout(giveUp, wait_ms) : undefined;
      signal.addEventListener('abort', giveUp, { once: true });
      const own = this.#waiting.get(asker);
      if (own) own.push(waiting);
      else this.#waiting.set(asker, [waiting]);
    });
  }

  #given(): ReleaseSlot {
    this.#taken++;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#taken--;
      for (const [asker, waiting] of this.#waiting) {
        this.#waiting.delete(asker);
        const next = waiting.shift()!;
        if (waiting.length > 0) this.#waiting.set(asker, waiting);
        next.give(this.#given());
        return;
      }
    };
  }

  #forget(asker: Asker, one: WaitingQuery): void {
    const left = this.#waiting.get(asker)?.filter((waiting) => waiting !== one) ?? [];
    if (left.length > 0) this.#waiting.set(asker, left);
    else this.#waiting.delete(asker);
  }

  #count(): number {
    return [...this.#waiting.values()].reduce((sum, waiting) => sum + waiting.length, 0);
  }
}

/**
 * At once, together, fewer than the connections that the embedded engine has, for the pipeline needs some of them. A small one
 * takes milliseconds, so the page of a dashboard or a second of a busy company's questions may wait; nobody waits for hundreds of
 * large ones.
 */
const SMALL_SLOTS = new QuerySlots({ at_once: 2, waiting_per_asker: 256, waiting: 1_024 });
const LARGE_SLOTS = new QuerySlots({ at_once: 1, waiting_per_asker: 16, waiting: 64 });

/**
 * Billing's own statements, which nobody bounds: an invoice may have any number of charges, and several are computed at one time.
 * They wait for each other however long, so that the pipeline's writes wait behind few; no tenant's wait behind all of another's.
 */
const BILLING_SLOTS = new QuerySlots({
  at_once: 4,
  waiting_per_asker: Number.POSITIVE_INFINITY,
  waiting: Number.POSITIVE_INFINITY,
  wait_ms: Number.POSITIVE_INFINITY,
});

/** A statement that answers from pre-aggregated rows or from few raw ones. Of one request a few stand in line at a time, however many it is made of. */
export function runAsSmall<Answer>({ tenant_id, bounds }: QueryOwner, work: () => Promise<Answer>): Promise<Answer> {
  if (bounds === undefined) return BILLING_SLOTS.within({ asker: tenant_id }, work);
  const own = slotsByRequest.get(bounds.spent) ?? new Semaphore(SMALL_SLOTS_PER_REQUEST);
  slotsByRequest.set(bounds.spent, own);
  return own.within(() => SMALL_SLOTS.within(bounds, work));
}

/** By request. */
const slotsByRequest = new WeakMap<QueryBounds['spent'], Semaphore>();
const SMALL_SLOTS_PER_REQUEST = 16;

/** One that looks at raw events without knowing how many. Those of one request are one asker's work: one after the other. */
export function runAsLarge<Answer>(asking: QueryOwner, work: () => Promise<Answer>): Promise<Answer> {
  const { bounds } = asking;
  if (bounds === undefined) return BILLING_SLOTS.within(toSlotOwner(asking), work);
  const before = lastLarge.get(bounds.spent) ?? Promise.resolve();
  const own = before.then(() => LARGE_SLOTS.within(bounds, work));
  lastLarge.set(
    bounds.spent,
    own.catch(() => {}),
  );
  return own;
}

/** By request. */
const lastLarge = new WeakMap<QueryBounds['spent'], Promise<unknown>>();

const toSlotOwner = ({ tenant_id, bounds }: QueryOwner) => bounds ?? { asker: tenant_id };

function busy(code: 'too_many_requests' | 'service_unavailable', whose: string): FarthingError {
  return new FarthingError(code, `too many questions ${whose}are waiting: try again later, or ask for less`);
}
