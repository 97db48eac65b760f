/** A statement to a store as a span: what it does and to which table, and never its text, which may hold values of customers. */
import { type Span, startSpan } from './spans.ts';

export function startStatement(system: 'postgresql' | 'clickhouse', text: string): Span | undefined {
  const name = summaryOf(text);
  return startSpan(name, { kind: 'client', attributes: { 'db.system.name': system, 'db.query.summary': name } });
}

/** `SELECT usage_buckets`: the verb, and the first table that is named. */
export function summaryOf(text: string): string {
  const [verb = 'STATEMENT'] = text.match(VERB) ?? [];
  const table = text.match(TABLE)?.[1];
  return table === undefined ? verb.toUpperCase() : `${verb.toUpperCase()} ${table.replaceAll(/["`]/g, '')}`;
}

const VERB = /[a-z]+/i;
const TABLE = /\b(?:from|into|update|table)\s+(["`\w.]+)/i;
