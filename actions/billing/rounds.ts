/**
 * How a run of the scheduler works off what is due of all tenants: a round at a time, each in the order in which it is
 * answered, until nothing is left. What cannot be done now is left for the next run and keeps nobody from theirs.
 */
import type { Due } from '../../storage/due-billing.ts';

export type Round = {
  /** The next of what is due, but for those that are left. */
  readonly next: (left: readonly string[]) => Promise<Due[]>;
  /** Whether it was done; else it is left for the next run. */
  readonly act: (due: Due) => Promise<boolean>;
  /** So many at once. */
  readonly workers: number;
};

export async function inRounds({ next, act, workers }: Round): Promise<void> {
  const left: string[] = [];
  for (;;) {
    const due = await next(left);
    if (due.length === 0) return;
    const rest = due.values();
    const worker = async () => {
      for (const one of rest) if (!(await act(one))) left.push(one.id);
    };
    await Promise.all(Array.from({ length: workers }, worker));
  }
}
