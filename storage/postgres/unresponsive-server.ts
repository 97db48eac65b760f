/**
 * Whoever holds a connection to a Postgres that hangs would wait for ever, and a statement may rightly wait for a lock, or change
 * a large table. So the server is asked, on a connection made for that, whether it is at work on the statement
 * (silence.ts). If it does not answer, or knows nothing of it, the connection is broken off: what is on it fails like on one
 * that was lost, and the pool lets it go.
 */
import type { Socket } from 'node:net';
import pg from 'pg';
import { PROBE_TIMEOUT_MS, SILENT_WITHIN_MS, watchUntilAnswered } from '../unresponsive-server.ts';
import { onAnswered } from './when-answered.ts';

export type WatchedConnection = {
  readonly connection: pg.Client;
  readonly url: string;
  /** Of the server's process behind the connection. */
  readonly pid: number;
};

export function watchForUnresponsivePostgres(watched: WatchedConnection): void {
  const { connection } = watched;
  onAnswered(connection, () =>
    watchUntilAnswered(
      () => isAtWork(watched),
      () => breakOff(connection),
    ),
  );
}

/** A server that refuses us one more connection lives: what can be told of the statement is then told at a later look. */
async function isAtWork({ url, pid }: WatchedConnection): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, application_name: 'farthing watch' });
  client.on('error', () => undefined); // What fails, fails the question too.
  const late = setTimeout(() => getStream(client).destroy(new Error('no answer')), PROBE_TIMEOUT_MS);
  try {
    await client.connect();
    const { rows } = await client.query('select state from pg_stat_activity where pid = $1', [pid]);
    return rows.length > 0 && !/^idle/.test(rows[0].state ?? '');
  } catch (error) {
    return (error as { severity?: string }).severity !== undefined;
  } finally {
    await client.end().catch(() => undefined);
    clearTimeout(late);
  }
}

function breakOff(connection: pg.Client): void {
  const error = new Error(`Connection terminated: Postgres did not answer within ${SILENT_WITHIN_MS / 1000} s`);
  getStream(connection).destroy(Object.assign(error, { code: 'ETIMEDOUT' }));
}

/** The driver offers no way to break a connection off without asking the server. */
function getStream(client: pg.Client): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream;
}
