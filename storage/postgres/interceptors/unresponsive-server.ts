/**
 * A statement to a hung Postgres would wait for ever, but a statement may rightly wait for a lock, or change a large table. So a
 * separate connection asks the server whether it works on the statement (storage/foundation/unresponsive-server.ts). If the server does not
 * answer, or does not know the statement, the connection is broken: its statement fails as on a lost connection, and the pool
 * discards it.
 */
import type { Socket } from 'node:net';
import pg from 'pg';
import { PROBE_TIMEOUT_MS, SILENT_WITHIN_MS, watchUntilAnswered } from '../../foundation/unresponsive-server.ts';
import { onAnswered } from './when-answered.ts';

type WatchedConnection = {
  readonly connection: pg.Client;
  readonly url: string;
  /** Pid of the server process of the connection. */
  readonly pid: number;
};

export function watchForUnresponsivePostgres(watched: WatchedConnection): void {
  const { connection } = watched;
  const watch = () =>
    watchUntilAnswered(
      () => isAtWork(watched),
      () => breakOff(connection),
    );
  // The server executes the statements of a connection in their order, so only the first unanswered one is watched.
  let unanswered = 0;
  let endWatch: ReturnType<typeof watch> | undefined;
  onAnswered(connection, () => {
    if (unanswered++ === 0) endWatch = watch();
    let isAnswered = false;
    return () => {
      // The driver answers twice if a value cannot be encoded.
      if (isAnswered) return;
      isAnswered = true;
      endWatch?.();
      if (--unanswered > 0) endWatch = watch();
    };
  });
}

/** Whether the server works on the statement. If it rejects another connection, it is alive, and a later probe checks the statement. */
async function isAtWork({ url, pid }: WatchedConnection): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, application_name: 'farthing watch' });
  client.on('error', () => undefined); // A failure fails the query, too.
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

/** Returns the socket of a connection, because the driver cannot close it without a message to the server. */
function getStream(client: pg.Client): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream;
}
