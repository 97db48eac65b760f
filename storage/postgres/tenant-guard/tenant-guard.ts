/**
 * The second barrier between tenants: a statement on behalf of a caller must contain the caller's scope for every table that it
 * touches, or it is not sent. The models add the scope (models/foundation/model.ts); a missing or foreign scope fails here with an error
 * (docs/decisions/0022-tenant-isolation.md). Verdicts are cached by text, so that each statement is parsed once.
 */
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import type { Scope } from '../../../core/foundation/scope.ts';
import { currentRequestContext } from '../../foundation/request-context.ts';
import { checkBulkInsert } from './bulk-insert.ts';
import { checkStatement, type Demand, type StatementVerdict } from './check-statement.ts';

type GuardedCallback = (error: Error | null, result: unknown) => void;
type GuardedQuery = (statement: unknown, answered?: GuardedCallback) => unknown;

/** Maximum length of a cached text. A longer text is an insert of many rows, which is hardly ever repeated. */
const CACHED_LENGTH_MAX = 10_000;
const verdicts = new LRUCache<string, StatementVerdict>({ max: 2000 });

class MissingTenantScope extends Error {
  override readonly name = 'ForgottenScope';
}

/** Installs a guard: from this call on, the connection sends only statements that the caller may send. The parser must be loaded. */
export function installTenantGuard(connection: pg.Client): void {
  const query: GuardedQuery = connection.query.bind(connection);
  const guardedQuery: GuardedQuery = (statement, answered) => {
    const refused = findMissingScope(statement);
    if (refused === undefined) return answered ? query(statement, answered) : query(statement);
    if (!answered) return Promise.reject(refused);
    process.nextTick(answered, refused, undefined);
    return undefined;
  };
  Object.assign(connection, { query: guardedQuery });
}

function findMissingScope(statement: unknown): MissingTenantScope | undefined {
  const context = currentRequestContext();
  if (!context) return undefined;
  const { text, values = [] } = typeof statement === 'string' ? { text: statement } : (statement as GuardedStatement);
  const verdict = getVerdict(text);
  const why = 'rejected' in verdict ? verdict.rejected : mismatch(verdict.demands, values, context.scope);
  return why === undefined
    ? undefined
    : new MissingTenantScope(`a statement was not sent: ${why}: ${text.slice(0, 300)}`);
}

type GuardedStatement = { text: string; values?: readonly unknown[] };

function getVerdict(text: string): StatementVerdict {
  if (text.length > CACHED_LENGTH_MAX) return checkBulkInsert(text) ?? checkStatement(text);
  const known = verdicts.get(text);
  if (known) return known;
  const verdict = checkStatement(text);
  verdicts.set(text, verdict);
  return verdict;
}

function mismatch(demands: readonly Demand[], values: readonly unknown[], scope: Scope): string | undefined {
  const wrong = demands.find(
    ({ parameter, many, scope_column: holds }) => !fits(values[parameter - 1], { many, own: scope[holds], holds }),
  );
  return wrong && `it is about the ${wrong.scope_column} of another in ${wrong.table}`;
}

/** Whether a value fits the scope. The environment is empty in a row that belongs to the whole tenant. */
function fits(
  value: unknown,
  { many, own, holds }: { many: boolean; own: string; holds: Demand['scope_column'] },
): boolean {
  if (many) return Array.isArray(value) && value.every((each) => fits(each, { many: false, own, holds }));
  return value === own || (holds === 'environment_id' && value === '');
}
