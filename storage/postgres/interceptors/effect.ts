/**
 * Whether a statement can change the data behind answers, according to Postgres' own parser. A statement has an effect unless it
 * clearly has none: a long or unreadable text, a function of another schema, and a write to any table but those named here all have
 * one.
 */
import { LRUCache } from 'lru-cache';
import { type Node, parseStatements } from './parser.ts';

/**
 * `reads`: reads the progress of usage, without an effect. `moves`: changes only that progress, outside a transaction. `ends`: ends
 * a transaction, whose statements may have had an effect.
 */
export type StatementEffect = 'none' | 'reads' | 'moves' | 'some' | 'begins' | 'ends';

/** Tables of the log and of the job clock: no answer depends on them, and the progress of the log is in `slices`. */
const ASIDE = new Set(['log_records', 'log_partitions', 'log_consumers', 'job_ticks']);
/** Columns of `slices` that change while a slice is written; the slice counts when `next_offset` passes it. */
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
/** Columns of usage progress. The tables below are written in the same statement; no answer depends on them. */
const MOVES = new Set([...ON_THE_WAY, 'next_offset', 'watermark_us', 'last_record']);
const UNTRACKED_TABLES = new Set(['slice_ledger', 'told_slices']);
const ASIDE_SCHEMAS = new Set(['pg_catalog', 'graphile_worker']);
const WRITES = new Set(['InsertStmt', 'UpdateStmt', 'DeleteStmt']);
const READS = new Set(['SelectStmt', 'VariableSetStmt', 'VariableShowStmt', 'ListenStmt', 'NotifyStmt']);
const BEGINS = new Set(['TRANS_STMT_BEGIN', 'TRANS_STMT_START']);
/** A rollback to a savepoint discards uncommitted work; the work before it is still to be committed. */
const INSIDE = new Set(['TRANS_STMT_SAVEPOINT', 'TRANS_STMT_RELEASE', 'TRANS_STMT_ROLLBACK_TO']);
/** A longer text is hardly ever repeated. */
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
    // An empty list means an unknown kind of statement.
    if (statements.length === 0) return 'some';
    const { TransactionStmt } = statements[0] as { TransactionStmt?: { kind: string; chain?: boolean } };
    if (!TransactionStmt || statements.length > 1) return effectWithin(statements);
    // COMMIT AND CHAIN ends one transaction and begins another.
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

/** Unqualified functions are ours, which write only as triggers, or Postgres'; those of the queue write only to its jobs. */
function isUnrelatedFunction(name: readonly Node[]): boolean {
  const [schema] = name as readonly { String?: { sval: string } }[];
  return name.length === 1 || ASIDE_SCHEMAS.has(schema!.String?.sval ?? '');
}

/** Checks nested nodes, too: a CTE may write. */
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

/** The table of our schema that the node writes to; null for anything else. */
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
