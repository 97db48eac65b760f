/**
 * The second wall between tenants: a statement that is sent on behalf of a caller must carry the caller's scope for every
 * table that it touches, or it is not sent. The models add the scope (models/model.ts); whoever forgets it, or writes that of
 * another, fails here and loudly (docs/decisions/0022-tenant-isolation.md). What is read of a statement is kept by its text, so that
 * each is read once.
 */
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import type { Scope } from '../../../core/scope.ts';
import { currentCaller } from '../../caller.ts';
import { bulkInsert } from './bulk-insert.ts';
import { type Demand, judge, type Verdict } from './judge.ts';

type Answered = (error: Error | null, result: unknown) => void;
type Query = (statement: unknown, answered?: Answered) => unknown;

/** A longer text is an insert of many rows, which hardly comes twice. */
const KEPT_LENGTH = 10_000;
const verdicts = new LRUCache<string, Verdict>({ max: 2000 });

export class ForgottenScope extends Error {
  override readonly name = 'ForgottenScope';
}

/** Behind it the connection sends nothing that the caller may not send. The parser is there. */
export function wallIn(connection: pg.Client): void {
  const query: Query = connection.query.bind(connection);
  const walledQuery: Query = (statement, answered) => {
    const refused = refusalOf(statement);
    if (refused === undefined) return answered ? query(statement, answered) : query(statement);
    if (!answered) return Promise.reject(refused);
    process.nextTick(answered, refused, undefined);
    return undefined;
  };
  Object.assign(connection, { query: walledQuery });
}

function refusalOf(statement: unknown): ForgottenScope | undefined {
  const caller = currentCaller();
  if (!caller) return undefined;
  const { text, values = [] } = typeof statement === 'string' ? { text: statement } : (statement as Statement);
  const verdict = verdictOf(text);
  const why = 'refused' in verdict ? verdict.refused : mismatch(verdict.demands, values, caller.scope);
  return why === undefined ? undefined : new ForgottenScope(`a statement was not sent: ${why}: ${text.slice(0, 300)}`);
}

type Statement = { text: string; values?: readonly unknown[] };

function verdictOf(text: string): Verdict {
  if (text.length > KEPT_LENGTH) return bulkInsert(text) ?? judge(text);
  const known = verdicts.get(text);
  if (known) return known;
  const verdict = judge(text);
  verdicts.set(text, verdict);
  return verdict;
}

function mismatch(demands: readonly Demand[], values: readonly unknown[], scope: Scope): string | undefined {
  const wrong = demands.find(
    ({ parameter, many, holds }) => !fits(values[parameter - 1], { many, own: scope[holds], holds }),
  );
  return wrong && `it is about the ${wrong.holds} of another in ${wrong.table}`;
}

/** What belongs to the tenant as a whole has no environment. */
function fits(value: unknown, { many, own, holds }: { many: boolean; own: string; holds: Demand['holds'] }): boolean {
  if (many) return Array.isArray(value) && value.every((each) => fits(each, { many: false, own, holds }));
  return value === own || (holds === 'environment_id' && value === '');
}
