/** Statements of one connection as spans of who asks. Wrapped only where there is a tracer. */
import type pg from 'pg';
import { startStatement } from '../../tracing/statement.ts';

type Answered = (error: Error | null, result: unknown) => void;
type Query = (statement: unknown, answered?: Answered) => unknown;

/** In two ways, like storage/postgres/silence.ts. */
export function traceStatements(connection: pg.Client): void {
  const query: Query = connection.query.bind(connection);
  const tracedQuery: Query = (statement, answered) => {
    const span = startStatement('postgresql', textOf(statement));
    if (span === undefined) return query(statement, answered);
    const ended = (error: unknown) => {
      if (error) span.fail(error);
      span.end();
    };
    if (!answered) {
      const asked = query(statement) as Promise<unknown>;
      asked.then(() => ended(null), ended);
      return asked;
    }
    return query(statement, (error, result) => {
      ended(error);
      answered(error, result);
    });
  };
  Object.assign(connection, { query: tracedQuery });
}

function textOf(statement: unknown): string {
  return typeof statement === 'string' ? statement : ((statement as { text?: string }).text ?? '');
}
