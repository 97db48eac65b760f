/**
 * What this process asks of a database that nobody else writes to: how many statements that can change something are out, and how many
 * have been answered. While none is out and none has been answered, nothing has changed (docs/decisions/0007-cached-answers.md).
 */
import type { Knex } from 'knex';
import type pg from 'pg';
import { readStatementEffect, type StatementEffect } from './effect.ts';
import { type AnswerCallback, onAnswered, readStatementText } from './when-answered.ts';

export type OwnStatements = {
  out: number;
  answered: number;
  /** Of those that move how far usage is counted, and change nothing else. They say what they have moved, and are not among the others. */
  moving: number;
  /** Told what one has moved; false where that is not known to hold. */
  moved: (row: MovedRow) => boolean;
  /** Until then, of this process (`performance.now`), one whose connection was lost may still be done by the server. */
  unsure_until_ms: number;
};

/** What was lost waits in the server for a lock, or with the server: longer than this nobody has seen, and silence.ts gives up on far less. */
const UNSURE_MS = 600_000;

/** Of the prepared statement by which looks are asked for (storage/cache/change-feed.ts). */
export const CHANGES_STATEMENT_NAME = 'look';

/** What ends a transaction is one of the others here, or none. */
type EffectNow = Exclude<StatementEffect, 'begins' | 'ends'>;
type CountedEffect = Exclude<EffectNow, 'none'>;

/** The row of `slices` as it is now, by the name of its columns. */
export type MovedRow = Record<string, string | number | boolean | null>;

/** By the address of the database, for all pools that this process has for it. */
const counts = new Map<string, OwnStatements>();
const alone = new WeakMap<Knex, OwnStatements>();

/** To be said before the database is asked for anything: nobody but this process writes to it. */
export function trackOwnStatements(postgres: Knex, url: string): void {
  const count = { out: 0, answered: 0, moving: 0, moved: () => false, unsure_until_ms: 0 };
  counts.set(url, count);
  alone.set(postgres, count);
}

/** Undefined where others may write, too. */
export function getOwnStatements(postgres: Knex): OwnStatements | undefined {
  return alone.get(postgres);
}

/** The statements of one connection, when the parser is there. */
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
    // Who has read it while one is out may know already what is not told here yet: a look that begins now sees as much.
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

/** An error that is none of the server's: what it does of the statement is not known. */
function recordUncertainty(count: OwnStatements, error: Error | null): void {
  if (error !== null && (error as { severity?: string }).severity === undefined)
    count.unsure_until_ms = performance.now() + UNSURE_MS;
}

/** What it sees is what whoever asks is told from then on. */
function isChangesStatement(statement: unknown): boolean {
  return (statement as { name?: string }).name === CHANGES_STATEMENT_NAME;
}

/** `moved` of its answer; none where it failed or has moved nothing. */
function movedBy(result: unknown): MovedRow[] {
  const { rows = [] } = (result ?? {}) as { rows?: { moved?: string | null }[] };
  return rows.flatMap(({ moved }) => (moved ? [JSON.parse(moved) as MovedRow] : []));
}

/** What ends a transaction has the effects of what was in it; and what moves within one has moved nothing before that. */
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
