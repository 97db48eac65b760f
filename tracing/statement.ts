/** A statement to a store as a span: its verb and its table, never its text, which may contain values of customers. */
import { type Span, startSpan } from './spans.ts';

export function startStatement(system: 'postgresql' | 'clickhouse', text: string): Span | undefined {
  const name = summarizeStatement(text);
  return startSpan(name, { kind: 'client', attributes: { 'db.system.name': system, 'db.query.summary': name } });
}

/** `SELECT usage_buckets`: the verb and the first table. For a statement that begins with WITH, the verb and table of its write. */
export function summarizeStatement(text: string): string {
  const written = /^\s*with\b/i.test(text) ? text.search(WRITES) : -1;
  const relevant = written < 0 ? text.replace(/^\s*with\b/i, 'select') : text.slice(written);
  const [verb = 'STATEMENT'] = relevant.match(VERB) ?? [];
  const table = relevant.match(TABLE)?.[1];
  return table === undefined ? verb.toUpperCase() : `${verb.toUpperCase()} ${table.replaceAll(/["`]/g, '')}`;
}

const VERB = /[a-z]+/i;
// FOR UPDATE only locks rows that are read.
const WRITES = /\b(?:insert\s+into|(?<!\bfor\s+(?:no\s+key\s+)?)update|delete\s+from)\b/i;
// `unnest` reads parameters, not a table.
const TABLE = /\b(?:from|into|update|table)\s+(?!unnest\b)(["`\w.]+)/i;
