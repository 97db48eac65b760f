/**
 * Whether a statement can change what answers are made of, by Postgres' own parser. What is not plainly without effect has one: a text that is
 * long or cannot be read, a function of another schema, and every table but those named here.
 */
import { LRUCache } from 'lru-cache';
import { type Node, parseStatements } from './parser.ts';

/**
 * `reads` how far usage is counted, and has no effect; `moves` that and nothing else, where it is not within a transaction; `ends` a transaction, in
 * which others may have had an effect.
 */
export type StatementEffect = 'none' | 'reads' | 'moves' | 'some' | 'begins' | 'ends';

/** Of the log and of the clockwork: nothing is answered from them, and how far the log has been read is in `slices`. */
const ASIDE = new Set(['log_records', 'log_partitions', 'log_consumers', 'job_ticks']);
/** Of `slices`, while one is written: it counts when `next_offset` moves behind it. */
const ON_THE_WAY = new Set([
  'slice_from',
  'slice_to',
  'phase',
  'attempt',
  'rows_since',
  'is_wide',
  'wide_slices',
  'updated_at',
]);
/** How far usage is counted, and what is written beside it in one statement: from these two nothing is answered. */
const MOVES = new Set([...ON_THE_WAY, 'next_offset', 'watermark_us', 'last_record']);
const UNTRACKED_TABLES = new Set(['slice_ledger', 'told_slices']);
const ASIDE_SCHEMAS = new Set(['pg_catalog', 'graphile_worker']);
const WRITES = new Set(['InsertStmt', 'UpdateStmt', 'DeleteStmt']);
const READS = new Set(['SelectStmt', 'VariableSetStmt', 'VariableShowStmt', 'ListenStmt', 'NotifyStmt']);
const BEGINS = new Set(['TRANS_STMT_BEGIN', 'TRANS_STMT_START']);
/** What one goes back to a savepoint from was not committed; that before it still is to be. */
const INSIDE = new Set(['TRANS_STMT_SAVEPOINT', 'TRANS_STMT_RELEASE', 'TRANS_STMT_ROLLBACK_TO']);
/** A longer one is hardly sent twice. */
const READ_LENGTH = 10_000;

const effects = new LRUCache<string, StatementEffect>({ max: 2000 });

export function readStatementEffect(text: string): StatementEffect {
  if (text.length > READ_LENGTH) return 'some';
  const known = effects.get(text);
  if (known) return known;
  const effect = readEffect(text);
  effects.set(text, effect);
  return effect;
}

function readEffect(text: string): StatementEffect {
  try {
    const statements = parseStatements(text);
    // Without a text it is one of a kind that nobody here knows.
    if (statements.length === 0) return 'some';
    const { TransactionStmt } = statements[0] as { TransactionStmt?: { kind: string; chain?: boolean } };
    if (!TransactionStmt || statements.length > 1) return effectWithin(statements);
    // It ends one and begins another.
    if (TransactionStmt.chain) return 'some';
    if (BEGINS.has(TransactionStmt.kind)) return 'begins';
    return INSIDE.has(TransactionStmt.kind) ? 'none' : 'ends';
  } catch {
    return 'some';
  }
}

function effectWithin(statements: readonly Node[]): StatementEffect {
  if (everywhere(statements, isHarmless)) return everywhere(statements, isUnrelatedToProgress) ? 'none' : 'reads';
  return statements.length === 1 && everywhere(statements, isHarmlessOrMove) ? 'moves' : 'some';
}

/** Of our schema, whose functions write nowhere unless they are of a trigger; of Postgres; and of the queue, which write to its jobs. */
function isUnrelatedFunction(name: readonly Node[]): boolean {
  const [schema] = name as readonly { String?: { sval: string } }[];
  return name.length === 1 || ASIDE_SCHEMAS.has(schema!.String?.sval ?? '');
}

/** Also of what stands inside of it: a query in front may write. */
function everywhere(node: unknown, holds: (kind: string, body: Node) => boolean): boolean {
  if (Array.isArray(node)) return node.every((each) => everywhere(each, holds));
  if (typeof node !== 'object' || node === null) return true;
  return Object.entries(node).every(([kind, body]) => holds(kind, body as Node) && everywhere(body, holds));
}

function isHarmless(kind: string, body: Node): boolean {
  if (kind === 'FuncCall') return isUnrelatedFunction(body.funcname as Node[]);
  if (kind === 'intoClause') return false;
  if (!/^[A-Z]\w*Stmt$/.test(kind) || READS.has(kind)) return true;
  const table = readTargetTable(kind, body);
  return table !== null && (ASIDE.has(table) || (table === 'slices' && setsOnly(ON_THE_WAY, kind, body)));
}

function isHarmlessOrMove(kind: string, body: Node): boolean {
  if (isHarmless(kind, body)) return true;
  const table = readTargetTable(kind, body);
  return table !== null && (UNTRACKED_TABLES.has(table) || (table === 'slices' && setsOnly(MOVES, kind, body)));
}

/** Which table of our schema it writes to; null where it does something else. */
function readTargetTable(kind: string, body: Node): string | null {
  if (!WRITES.has(kind)) return null;
  const { relname, schemaname } = body.relation as { relname: string; schemaname?: string };
  return schemaname === undefined ? relname : null;
}

function setsOnly(columns: ReadonlySet<string>, kind: string, { targetList }: Node): boolean {
  if (kind !== 'UpdateStmt') return false;
  return (targetList as Node[]).every(({ ResTarget }) => columns.has((ResTarget as { name: string }).name));
}

function isUnrelatedToProgress(kind: string, body: Node): boolean {
  const table = kind === 'RangeVar' ? body.relname : readTargetTable(kind, body);
  return table !== 'slices' && !UNTRACKED_TABLES.has(table as string);
}
