/** Traces the statements of one connection as spans of the caller, if there is a tracer. */
import type pg from 'pg';
import { startStatement } from '../../../tracing/statement.ts';
import { onAnswered, readStatementText } from './when-answered.ts';

export function traceStatements(connection: pg.Client): void {
  onAnswered(connection, (statement) => {
    const span = startStatement('postgresql', readStatementText(statement));
    return (
      span &&
      ((error) => {
        if (error) span.fail(error);
        span.end();
      })
    );
  });
}
