/**
 * Counts the answered writes of this process to a database, so that a change snapshot expires with them
 * (docs/decisions/0007-cached-answers.md). Every statement that does not begin like a read counts, unless it is marked. A transaction
 * counts when it ends.
 */
import type pg from 'pg';
import { type AnswerCallback, onAnswered, readStatementText } from './when-answered.ts';

/**
 * Marks a frequent statement whose changes are in no cached answer, or that the cache learns of otherwise: statements of the log, of slices,
 * and of the queues that the process polls while it is idle. An unmarked one makes the next cached reads wait for a new snapshot.
 */
export const IN_NO_ANSWER = '/* in no answer */';

export type OwnWrites = { count: number };

/** Matches a single statement that only reads. A text of several statements counts as a write. */
const READ =
  /^\s*(?:select|show|set|listen|notify|savepoint|release|rollback\s+to|with\b(?![^;]*\b(?:insert|update|delete|merge)\b))\b[^;]*;?\s*$/i;
const BEGIN = /^\s*(?:begin|start\s+transaction)\b[^;]*;?\s*$/i;
const END = /^\s*(?:commit|rollback|end|abort)\b[^;]*;?\s*$/i;

/** Writes by the URL of the database, for all pools of the process. */
const writes = new Map<string, OwnWrites>();

export function getOwnWrites(url: string): OwnWrites {
  let own = writes.get(url);
  if (own === undefined) writes.set(url, (own = { count: 0 }));
  return own;
}

/** Counts the writes of one connection. */
export function countWrites(connection: pg.Client, url: string): void {
  const own = getOwnWrites(url);
  let isOpen = false;
  /** Whether a statement has written since the last transaction ended. */
  let hasWritten = false;
  const onBegun: AnswerCallback = (error) => {
    if (!error) isOpen = true;
  };
  // A failed statement is counted, too: without an answer from the server it may have taken effect.
  const onWritten = () => void own.count++;
  onAnswered(connection, (statement) => {
    const text = readStatementText(statement);
    if (READ.test(text) || text.endsWith(IN_NO_ANSWER)) return undefined;
    if (BEGIN.test(text)) return onBegun;
    const isEnd = END.test(text);
    const isCounted = isEnd ? hasWritten : !isOpen;
    hasWritten = !isEnd;
    if (isEnd) isOpen = false;
    return isCounted ? onWritten : undefined;
  });
}
