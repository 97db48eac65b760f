/**
 * Records the reads of a computation: ids in the rows of Postgres, whose changes invalidate the result; future instants in them, at which
 * the result may change; and usage queries. Dependencies are never listed by hand, so none is missed.
 */
import type pg from 'pg';
import { CallValue } from '../../foundation/call-value.ts';
import type { UsageResult } from '../../usage/live-usage.ts';
import type { MeterUsageQuery } from '../../usage/usage-query.ts';
import { onAnswered } from './when-answered.ts';

export type DependencyRecorder = {
  /** Records a row of Postgres. */
  row(row: Readonly<Record<string, unknown>>): void;
  /** Records a usage query as a dependency, before the usage is read. */
  recordUsageQuery(tenant_id: string, environment_id: string, query: MeterUsageQuery): void;
  read(read: UsageResult): void;
};

const recorders = new CallValue<DependencyRecorder>();

export function runWithRecorder<Result>(recorder: DependencyRecorder, work: () => Result): Result {
  return recorders.run(recorder, work);
}

export function currentRecorder(): DependencyRecorder | undefined {
  return recorders.get();
}

/** Runs work without a recorder, because work for several callers is recorded for none of them. */
export function runUnrecorded<Result>(work: () => Result): Result {
  return recorders.get() === undefined ? work() : recorders.run(undefined, work);
}

/** Records rows of a batched read for one caller: in lists, in maps, and as parts of joined rows. */
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

/** Records the statements of one connection. */
export function recordRows(connection: pg.Client): void {
  onAnswered(connection, () => {
    const recorder = recorders.get();
    return (
      recorder &&
      ((error, result) => {
        if (error) return;
        for (const row of (result as { rows?: Record<string, unknown>[] } | undefined)?.rows ?? []) recorder.row(row);
      })
    );
  });
}
