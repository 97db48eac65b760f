/**
 * What a computation has read, noted while it reads: the ids in the rows of Postgres, on whose change the result is no longer known to
 * hold; the instants in them that are still to come, at which it may be another one; and the questions about usage. Nobody lists
 * by hand what a result depends on, so nothing is forgotten.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type pg from 'pg';
import { onAnswered } from '../postgres/when-answered.ts';
import type { UsageRead } from '../usage/live-usage.ts';
import type { MeterUsageQuery } from '../usage/usage-query.ts';

export type DependencyRecorder = {
  /** A row of Postgres that was read. */
  row(row: Readonly<Record<string, unknown>>): void;
  /** Records that it was made of, where the rows were read for several at one time. */
  dependsOn?(ids: Iterable<string>): void;
  /** Before usage is read. */
  recordUsageQuery(tenant_id: string, environment_id: string, query: MeterUsageQuery): void;
  /** What was read of it. */
  read(read: UsageRead): void;
};

const recorders = new AsyncLocalStorage<DependencyRecorder>();

export function runWithRecorder<Result>(recorder: DependencyRecorder, work: () => Result): Result {
  return recorders.run(recorder, work);
}

export function currentRecorder(): DependencyRecorder | undefined {
  return recorders.getStore();
}

/** Who works for several at one time is noted by none of them. */
export function runUnrecorded<Result>(work: () => Result): Result {
  return recorders.exit(work);
}

/** Rows that were read for several at one time, as one of them has them: in lists, in maps, and beside one another in what was joined. */
export function recordAnswer(recorder: DependencyRecorder, answer: unknown): void {
  if (answer === null || typeof answer !== 'object') return;
  if (Array.isArray(answer) || answer instanceof Map) {
    for (const one of answer.values()) recordAnswer(recorder, one);
    return;
  }
  const row = answer as Readonly<Record<string, unknown>>;
  recorder.row(row);
  for (const part of Object.values(row))
    if (part !== null && typeof part === 'object') recorder.row(part as typeof row);
}

/** The statements of one connection. */
export function recordRows(connection: pg.Client): void {
  onAnswered(connection, () => {
    const recorder = recorders.getStore();
    return (
      recorder &&
      ((error, result) => {
        if (error) return;
        for (const row of (result as { rows?: Record<string, unknown>[] } | undefined)?.rows ?? []) recorder.row(row);
      })
    );
  });
}
