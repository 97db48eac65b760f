/** Statements of one connection as spans of who asks. Wrapped only where there is a tracer. */
import type pg from 'pg';
import { startStatement } from '../../tracing/statement.ts';
import { textOf, whenAnswered } from './when-answered.ts';

export function traceStatements(connection: pg.Client): void {
  whenAnswered(connection, (statement) => {
    const span = startStatement('postgresql', textOf(statement));
    return (
      span &&
      ((error) => {
        if (error) span.fail(error);
        span.end();
      })
    );
  });
}
