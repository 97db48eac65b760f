/**
 * Whether a statement can change what answers are made of, by Postgres' own parser. What is not plainly without effect has one: a text that is
 * long or cannot be read, a function of another schema, and every table but those named here.
 */
import { LRUCache } from 'lru-cache';
import { type Node, parseStatements } from './parser.ts';

/** `ends` a transaction, in which others may have had an effect. */
export type Effect = 'none' | 'some' | 'begins' | 'ends';

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
const ASIDE_SCHEMAS = new Set(['pg_catalog', 'graphile_worker']);
const WRITES = new Set(['InsertStmt', 'UpdateStmt', 'DeleteStmt']);
const READS = new Set(['SelectStmt', 'VariableSetStmt', 'VariableShowStmt', 'ListenStmt', 'NotifyStmt']);
const BEGINS = new Set(['TRANS_STMT_BEGIN', 'TRANS_STMT_START']);
const INSIDE = new Set(['TRANS_STMT_SAVEPOINT', 'TRANS_STMT_RELEASE']);
/** A longer one is hardly sent twice. */
const READ_LENGTH = 10_000;

const effects = new LRUCache<string, Effect>({ max: 2000 });

export function effectOf(text: string): Effect {
  if (text.length > READ_LENGTH) return 'some';
  const known = effects.get(text);
  if (known) return known;
  const effect = readEffect(text);
  effects.set(text, effect);
  return effect;
}

function readEffect(text: string): Effect {
  try {
    const statements = parseStatements(text);
    // Without a text it is one of a kind that nobody here knows.
    if (statements.length !== 1) return statements.length > 0 && statements.every(isWithout) ? 'none' : 'some';
    const { TransactionStmt } = statements[0] as { TransactionStmt?: { kind: string } };
    if (!TransactionStmt) return isWithout(statements[0]!) ? 'none' : 'some';
    if (BEGINS.has(TransactionStmt.kind)) return 'begins';
    return INSIDE.has(TransactionStmt.kind) ? 'none' : 'ends';
  } catch {
    return 'some';
  }
}

/** Of our schema, whose functions write nowhere unless they are of a trigger; of Postgres; and of the queue, which write to its jobs. */
function isAside(name: readonly Node[]): boolean {
  const [schema] = name as readonly { String?: { sval: string } }[];
  return name.length === 1 || ASIDE_SCHEMAS.has(schema!.String?.sval ?? '');
}

/** Also of what stands inside of it: a query in front may write. */
function isWithout(node: unknown): boolean {
  if (Array.isArray(node)) return node.every(isWithout);
  if (typeof node !== 'object' || node === null) return true;
  return Object.entries(node).every(([kind, body]) => isHarmless(kind, body as Node) && isWithout(body));
}

function isHarmless(kind: string, body: Node): boolean {
  if (kind === 'FuncCall') return isAside(body.funcname as Node[]);
  if (kind === 'intoClause') return false;
  if (!/^[A-Z]\w*Stmt$/.test(kind) || READS.has(kind)) return true;
  const { relname, schemaname } = (body.relation ?? {}) as { relname?: string; schemaname?: string };
  if (!WRITES.has(kind) || schemaname !== undefined) return false;
  return ASIDE.has(relname!) || (kind === 'UpdateStmt' && relname === 'slices' && isOnTheWay(body));
}

function isOnTheWay({ targetList }: Node): boolean {
  return (targetList as Node[]).every(({ ResTarget }) => ON_THE_WAY.has((ResTarget as { name: string }).name));
}
