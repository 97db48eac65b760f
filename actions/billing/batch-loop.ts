/**
 * How a run of the scheduler works off what is due of all tenants: a round at a time, each in the order in which it is
 * answered, until nothing is left. What cannot be done now is left for the next run and keeps nobody from theirs.
 */
import { groupBy } from '../../core/group-by.ts';
import type { DueRecord } from '../../storage/due-billing.ts';
import { runWithTimeout } from '../../storage/in-time.ts';

export type BatchLoop = {
  /** The next of what is due, but for those that are left. */
  readonly next: (left: readonly string[]) => Promise<DueRecord[]>;
  /** Whether it was done; else it is left for the next run. */
  readonly act: (due: DueRecord) => Promise<boolean>;
  /** Several of one environment in one transaction, all of them or none. What it names is left to `act`, alone and in this order. */
  readonly actBatch?: (due: readonly DueRecord[], handoff: BatchHandoff) => Promise<BatchOutcome>;
  /** So many at once. */
  readonly workers: number;
  /** How far it is, before more of it is done: a long run is seen to go on. */
  readonly onProgress?: (() => void | Promise<void>) | undefined;
} & Interruptible;

/** `mayGoOn`: asked before each group; the rest is left, to whoever goes on with it, when it says no. */
export type Interruptible = { readonly mayGoOn?: (() => Promise<boolean>) | undefined };

/** Gets the report of a run while it runs. */
export type WatchedRun<Report> = Interruptible & {
  readonly onProgress?: ((report: Report) => void | Promise<void>) | undefined;
};

export type BatchOutcome = { readonly left: readonly string[]; readonly alone: readonly DueRecord[] };

/** So many in one transaction: whoever wants one of the records waits for all of them. */
const GROUP_MAX = 100;

export async function runBatches(round: BatchLoop): Promise<void> {
  const left: string[] = [];
  let hasBegun = false;
  let isInterrupted = false;
  const onGroup = async () => {
    if (hasBegun) await round.onProgress?.();
    hasBegun = true;
  };
  for (;;) {
    const due = await round.next(left);
    if (due.length === 0) return;
    const rest = splitBatches(due, round.actBatch ? GROUP_MAX : 1).values();
    const work = async (worker: OrderedWorker) => {
      for (const group of rest) {
        isInterrupted ||= (await round.mayGoOn?.()) === false;
        if (isInterrupted) break;
        await onGroup();
        left.push(...(await worker.begin(group)));
      }
      left.push(...(await worker.end()));
    };
    await Promise.all(Array.from({ length: round.workers }, () => work(new OrderedWorker(round))));
    if (isInterrupted) return;
  }
}

/** Those of one environment, in the order in which they come; environments take turns. */
function splitBatches(due: readonly DueRecord[], max: number): DueRecord[][] {
  const byEnvironment = groupBy(due, ({ tenant_id, environment_id }) => `${tenant_id} ${environment_id}`);
  const groups = [...byEnvironment.values()].flatMap((all) =>
    Array.from({ length: Math.ceil(all.length / max) }, (_, nth) => ({
      nth,
      due: all.slice(nth * max, (nth + 1) * max),
    })),
  );
  return groups.sort((a, b) => a.nth - b.nth).map((group) => group.due);
}

type StartedBatch = {
  readonly group: readonly DueRecord[];
  readonly ended: Promise<BatchOutcome | null>;
  isOver: boolean;
};

/** One group after the other. The next is begun when the last has ended, or has passed on its turn. */
class OrderedWorker {
  readonly #round: BatchLoop;
  #last: StartedBatch | undefined;

  constructor(round: BatchLoop) {
    this.#round = round;
  }

  /** Ready when the next may be begun; answers what is left of those that have ended meanwhile. */
  async begin(group: readonly DueRecord[]): Promise<string[]> {
    const { act, actBatch: actTogether } = this.#round;
    const left: string[] = [];
    if (!actTogether || group.length === 1 || this.#last?.isOver) left.push(...(await this.end()));
    if (!actTogether || group.length === 1) {
      for (const one of group) if (!(await act(one))) left.push(one.id);
      return left;
    }
    const last = this.#last;
    let begun = this.#start(group, actTogether, last);
    // It has made way for the one before it, which is done first.
    const shouldRepeat = last !== undefined && (await last.ended) === null && (await begun.begun.ended) === null;
    left.push(...(await this.end()));
    if (shouldRepeat) begun = this.#start(group, actTogether);
    this.#last = begun.begun;
    await Promise.race([begun.turn.isNextAllowed, begun.begun.ended]);
    return left;
  }

  #start(group: readonly DueRecord[], actTogether: NonNullable<BatchLoop['actBatch']>, last?: StartedBatch) {
    const handoff = new BatchHandoff(last?.ended);
    const ended = actTogether(group, handoff).catch(() => null);
    const begun: StartedBatch = { group, ended, isOver: false };
    void ended.finally(() => {
      begun.isOver = true;
    });
    return { turn: handoff, begun };
  }

  /** What is left of the last one. */
  async end(): Promise<string[]> {
    const last = this.#last;
    this.#last = undefined;
    return last ? retryInHalves(last.group, await last.ended, this.#round) : [];
  }
}

/** How long a group waits for the one before it, with all that it holds: that may wait for some of it itself. */
const PATIENCE_MS = 5_000;

/** Of a group that may be begun before the one before it has ended, as far as it does not hang on it. */
export class BatchHandoff {
  readonly #before: Promise<BatchOutcome | null> | undefined;
  readonly isNextAllowed: Promise<void>;
  #passOn!: () => void;

  constructor(before?: Promise<BatchOutcome | null>) {
    this.#before = before;
    this.isNextAllowed = new Promise((resolve) => {
      this.#passOn = resolve;
    });
  }

  /**
   * What is before it has ended: nothing is kept of a group that has not waited for that. It fails where that was undone, or takes too
   * long, and its group is done again behind it.
   */
  async waitForPrevious(): Promise<void> {
    if (!this.#before) return;
    const before = this.#before;
    if (!(await runWithTimeout(() => before, PATIENCE_MS))) throw new Error('what comes before is not done');
  }

  /** What is left to do of it hangs on nothing that the next one holds. */
  allowNext(): void {
    this.#passOn();
  }
}

/** Where one of several fails nothing of them is done: each half is tried by itself, until whoever fails is alone. */
async function retryInHalves(
  group: readonly DueRecord[],
  ended: BatchOutcome | null,
  round: BatchLoop,
): Promise<string[]> {
  const { act, actBatch: actTogether } = round;
  const left: string[] = [];
  if (ended) {
    for (const one of ended.alone) if (!(await act(one))) left.push(one.id);
    return [...left, ...ended.left];
  }
  const half = Math.ceil(group.length / 2);
  for (const some of [group.slice(0, half), group.slice(half)]) {
    if (some.length === 1) {
      if (!(await act(some[0]!))) left.push(some[0]!.id);
    } else
      left.push(...(await retryInHalves(some, await actTogether!(some, new BatchHandoff()).catch(() => null), round)));
  }
  return left;
}
