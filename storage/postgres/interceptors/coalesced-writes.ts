/**
 * Sends concurrent statements of one connection in one write. A write wakes up the server, which costs more CPU than the statement of a
 * small record. The driver sends each statement at once (its `pipeline` mode), and the server executes them in the order sent.
 */
import type { Socket } from 'node:net';
import type pg from 'pg';

export function coalesceWrites(connection: pg.Client): void {
  const query: (...statement: unknown[]) => unknown = connection.query.bind(connection);
  let isCorked = false;
  const coalescedQuery = (...statement: unknown[]) => {
    if (!isCorked) {
      const { stream } = (connection as unknown as { connection: { stream: Socket } }).connection;
      isCorked = true;
      stream.cork();
      // Runs after the promise callbacks that are pending now, which may send further statements.
      process.nextTick(() => {
        isCorked = false;
        stream.uncork();
      });
    }
    return query(...statement);
  };
  Object.assign(connection, { query: coalescedQuery });
}
