/**
 * Processes due records of all tenants in rounds, in the order of the query, until no record is due. A record that cannot be processed now
 * is skipped until the next run and does not block the others.
 */
import { groupBy } from '../../core/foundation/group-by.ts';
import { runWithTimeout } from '../../storage/foundation/in-time.ts';
import type { DueRecord } from '../../storage/queue/due-billing.ts';

type BatchLoop = {
  /** Loads the next due records, except those whose ids are in `left`. */
  readonly next: (left: readonly string[]) => Promise<DueRecord[]>;
  /** Processes a record. Resolves to false if the next run has to try again. */
  readonly act: (due: DueRecord) => Promise<boolean>;
  /**
   * Processes several records of one environment in one transaction, all or none. `act` then processes the records in `alone` of its
   * result, one by one and in this order.
   */
  readonly actBatch?: (due: readonly DueRecord[], handoff: BatchHandoff) => Promise<BatchOutcome>;
  /** Groups processed concurrently. */
  readonly workers: number;
  /** Reports progress of a long run. Called before each group but the first. */
  readonly onProgress?: (() => void | Promise<void>) | undefined;
} & Interruptible;

/** `mayGoOn` is called before each group. If it returns false, the run stops and a later run does the rest. */
export type Interruptible = { readonly mayGoOn?: (() => Promise<boolean>) | undefined };

/** `onProgress` receives the report of a run while it runs. */
export type WatchedRun<Report> = Interruptible & {
  readonly onProgress?: ((report: Report) => void | Promise<void>) | undefined;
};

export type BatchOutcome = { readonly left: readonly string[]; readonly alone: readonly DueRecord[] };

/** Records per transaction. A transaction that needs one of the records waits for the whole group. */
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

/** Groups of at most `max` records of one environment, in due order. Environments alternate. */
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

/** Runs one group after the other. The next begins when the previous has ended or has called `allowNext`. */
class OrderedWorker {
  readonly #round: BatchLoop;
  #last: StartedBatch | undefined;

  constructor(round: BatchLoop) {
    this.#round = round;
  }

  /** Resolves when the next group may begin. Returns the ids of records that ended groups have skipped meanwhile. */
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
    // If the previous group failed, this group was rolled back, too. The previous group is retried first, and then this one.
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

  /** Waits for the last group; returns the ids of records that it skipped. */
  async end(): Promise<string[]> {
    const last = this.#last;
    this.#last = undefined;
    return last ? retryInHalves(last.group, await last.ended, this.#round) : [];
  }
}

/** Limit of a group's wait for the previous group. The waiting group holds locks that the previous one may need. */
const PATIENCE_MS = 5_000;

/** Lets a group begin before the previous group has ended, as far as its work does not depend on it. */
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
   * Waits until the previous group has ended; no group commits without this wait. Throws if the previous group was rolled back or takes
   * longer than PATIENCE_MS. The group is then repeated after it.
   */
  async waitForPrevious(): Promise<void> {
    if (!this.#before) return;
    const before = this.#before;
    if (!(await runWithTimeout(() => before, PATIENCE_MS))) throw new Error('what comes before is not done');
  }

  /**
   * Allows the next group to begin. Called when the remaining work of this group depends on no lock of the next one.
   */
  allowNext(): void {
    this.#passOn();
  }
}

/** If one record fails, the whole group is rolled back. Each half is retried by itself, until the failing record is alone. */
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
