/**
 * How a run of the scheduler works off what is due of all tenants: a round at a time, each in the order in which it is
 * answered, until nothing is left. What cannot be done now is left for the next run and keeps nobody from theirs.
 */
import { groupBy } from '../../core/group-by.ts';
import type { Due } from '../../storage/due-billing.ts';

export type Round = {
  /** The next of what is due, but for those that are left. */
  readonly next: (left: readonly string[]) => Promise<Due[]>;
  /** Whether it was done; else it is left for the next run. */
  readonly act: (due: Due) => Promise<boolean>;
  /** Several of one environment in one transaction, all of them or none. What it names is left to `act`, alone and in this order. */
  readonly actTogether?: (due: readonly Due[]) => Promise<Ended>;
  /** So many at once. */
  readonly workers: number;
  /** How far it is, before more of it is done: a long run is seen to go on. */
  readonly onProgress?: (() => void | Promise<void>) | undefined;
};

/** Gets the report of a run while it runs. */
export type Watched<Report> = { readonly onProgress?: ((report: Report) => void | Promise<void>) | undefined };

export type Ended = { readonly left: readonly string[]; readonly alone: readonly Due[] };

/** So many in one transaction: whoever wants one of the records waits for all of them. */
const GROUP_MAX = 100;

export async function inRounds(round: Round): Promise<void> {
  const left: string[] = [];
  let hasBegun = false;
  for (;;) {
    const due = await round.next(left);
    if (due.length === 0) return;
    const rest = groupsOf(due, round.actTogether ? GROUP_MAX : 1).values();
    const worker = async () => {
      for (const group of rest) {
        if (hasBegun) await round.onProgress?.();
        hasBegun = true;
        left.push(...(await leftOf(group, round)));
      }
    };
    await Promise.all(Array.from({ length: round.workers }, worker));
  }
}

/** Those of one environment, in the order in which they come. */
function groupsOf(due: readonly Due[], max: number): Due[][] {
  const byEnvironment = groupBy(due, ({ tenant_id, environment_id }) => `${tenant_id} ${environment_id}`);
  return [...byEnvironment.values()].flatMap((all) =>
    Array.from({ length: Math.ceil(all.length / max) }, (_, index) => all.slice(index * max, (index + 1) * max)),
  );
}

/** Where one of several fails nothing of them is done: each half is tried by itself, until whoever fails is alone. */
async function leftOf(group: readonly Due[], round: Round): Promise<string[]> {
  const { act, actTogether } = round;
  const left: string[] = [];
  if (!actTogether || group.length === 1) {
    for (const one of group) if (!(await act(one))) left.push(one.id);
    return left;
  }
  const ended = await actTogether(group).catch(() => null);
  if (ended) {
    for (const one of ended.alone) if (!(await act(one))) left.push(one.id);
    return [...left, ...ended.left];
  }
  const half = Math.ceil(group.length / 2);
  const first = await leftOf(group.slice(0, half), round);
  return [...first, ...(await leftOf(group.slice(half), round))];
}
