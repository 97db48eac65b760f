/**
 * What a computation has read, noted while it reads: the ids in the rows of Postgres, on whose change the result is no longer known to
 * hold; the instants in them that are still to come, at which it may be another one; and the questions about usage. Nobody lists
 * by hand what a result depends on, so nothing is forgotten.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type pg from 'pg';
import { whenAnswered } from '../postgres/when-answered.ts';
import type { UsageRead } from '../usage/running-usage.ts';
import type { UsageAsked } from '../usage/usage-asked.ts';

export type Notes = {
  /** A row of Postgres that was read. */
  row(row: Readonly<Record<string, unknown>>): void;
  /** Records that it was made of, where the rows were read for several at one time. */
  madeOf?(ids: Iterable<string>): void;
  /** Before usage is read. */
  asking(tenant_id: string, environment_id: string, asked: UsageAsked): void;
  /** What was read of it. */
  read(read: UsageRead): void;
};

const noting = new AsyncLocalStorage<Notes>();

export function notedBy<Result>(notes: Notes, work: () => Result): Result {
  return noting.run(notes, work);
}

export function currentNotes(): Notes | undefined {
  return noting.getStore();
}

/** Who works for several at one time is noted by none of them. */
export function unnoted<Result>(work: () => Result): Result {
  return noting.exit(work);
}

/** Rows that were read for several at one time, as one of them has them: in lists, in maps, and beside one another in what was joined. */
export function noteAnswer(notes: Notes, answer: unknown): void {
  if (answer === null || typeof answer !== 'object') return;
  if (Array.isArray(answer) || answer instanceof Map) {
    for (const one of answer.values()) noteAnswer(notes, one);
    return;
  }
  const row = answer as Readonly<Record<string, unknown>>;
  notes.row(row);
  for (const part of Object.values(row)) if (part !== null && typeof part === 'object') notes.row(part as typeof row);
}

/** The statements of one connection. */
export function noteRows(connection: pg.Client): void {
  whenAnswered(connection, () => {
    const notes = noting.getStore();
    return (
      notes &&
      ((error, result) => {
        if (error) return;
        for (const row of (result as { rows?: Record<string, unknown>[] } | undefined)?.rows ?? []) notes.row(row);
      })
    );
  });
}
