/**
 * Counts this process's statements to a database that has no other writer: how many that may change something are in flight, and
 * how many are answered. While none is in flight and none has been answered, nothing has changed
 * (docs/decisions/0007-cached-answers.md).
 */
import type { Knex } from 'knex';
import type pg from 'pg';
import { readStatementEffect, type StatementEffect } from './effect.ts';
import { type AnswerCallback, onAnswered, readStatementText } from './when-answered.ts';

type OwnStatements = {
  out: number;
  answered: number;
  /** In-flight statements that change only the progress of usage. They return their changes, and are not counted in the others. */
  moving: number;
  /** Receives a change of usage progress; false if the change feed cannot apply it. */
  moved: (row: MovedRow) => boolean;
  /** Until then (by `performance.now`) the server may still execute a statement whose connection was lost. */
  unsure_until_ms: number;
};

/**
 * Upper bound for a lost statement that waits for a lock in the server, or whose server hangs; storage/foundation/unresponsive-server.ts gives
 * up much earlier.
 */
const UNSURE_MS = 600_000;

/** Name of the prepared statement that reads change snapshots (storage/cache/change-feed.ts). */
export const CHANGES_STATEMENT_NAME = 'look';

/** The end of a transaction becomes `some` or `none` here. */
type EffectNow = Exclude<StatementEffect, 'begins' | 'ends'>;
type CountedEffect = Exclude<EffectNow, 'none'>;

/** The current row of `slices`, by column name. */
type MovedRow = Record<string, string | number | boolean | null>;

/** By the URL of the database, for all pools of this process. */
const counts = new Map<string, OwnStatements>();
const alone = new WeakMap<Knex, OwnStatements>();

/** Must be called before the first statement: declares that only this process writes to the database. */
export function trackOwnStatements(postgres: Knex, url: string): void {
  const count = { out: 0, answered: 0, moving: 0, moved: () => false, unsure_until_ms: 0 };
  counts.set(url, count);
  alone.set(postgres, count);
}

/** Undefined if other processes may write, too. */
export function getOwnStatements(postgres: Knex): OwnStatements | undefined {
  return alone.get(postgres);
}

/** Counts the statements of one connection; the parser must be loaded. */
export function countStatements(connection: pg.Client, url: string): void {
  const count = counts.get(url);
  if (count === undefined) return;
  const effectNow = effects();
  const ended: Record<CountedEffect, AnswerCallback> = {
    some: (error) => {
      recordUncertainty(count, error);
      count.out--;
      count.answered++;
    },
    moves: (error, result) => {
      count.moving--;
      recordUncertainty(count, error);
      const rows = movedBy(result);
      if (rows.length === 0 || !rows.every((row) => count.moved(row))) count.answered++;
    },
    // A reader of the progress, while a change of it is in flight, may have seen values that are not recorded here yet. A change
    // snapshot that begins now sees at least as much.
    reads: () => {
      if (count.moving > 0) count.answered++;
    },
  };
  onAnswered(connection, (statement) => {
    const effect = isChangesStatement(statement) ? 'none' : effectNow(readStatementText(statement));
    if (effect === 'none') return undefined;
    if (effect === 'some') count.out++;
    if (effect === 'moves') count.moving++;
    return ended[effect];
  });
}

/** With a client-side error, it is unknown whether the server executed the statement. */
function recordUncertainty(count: OwnStatements, error: Error | null): void {
  if (error !== null && (error as { severity?: string }).severity === undefined)
    count.unsure_until_ms = performance.now() + UNSURE_MS;
}

/** The change snapshot is itself the record of changes, so it does not count. */
function isChangesStatement(statement: unknown): boolean {
  return (statement as { name?: string }).name === CHANGES_STATEMENT_NAME;
}

/** The `moved` column of the answer; empty if the statement failed or moved nothing. */
function movedBy(result: unknown): MovedRow[] {
  const { rows = [] } = (result ?? {}) as { rows?: { moved?: string | null }[] };
  return rows.flatMap(({ moved }) => (moved ? [JSON.parse(moved) as MovedRow] : []));
}

/**
 * A COMMIT or ROLLBACK counts as a write (`some`) if a statement of its transaction counted as one, else as `none`. A change of usage
 * progress (`moves`) inside a transaction also counts as a write, because it takes effect only at the commit.
 */
function effects(): (text: string) => EffectNow {
  let isOpen = false;
  let isOwed = false;
  return (text) => {
    const effect = readStatementEffect(text);
    if (effect === 'begins') {
      isOpen = true;
      isOwed = false;
      return 'none';
    }
    if (effect === 'ends') {
      isOpen = false;
      return isOwed ? 'some' : 'none';
    }
    const own = effect === 'moves' && isOpen ? 'some' : effect;
    if (own === 'some') isOwed = true;
    return own;
  };
}
