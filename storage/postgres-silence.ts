/**
 * A Postgres that hangs answers nothing and breaks nothing off, so whoever holds a connection to it would wait for ever. How
 * long a statement may take says little: one may rightly wait for a lock, or change a large table. So after some seconds
 * the server is asked, on a connection made for that, whether it is at work on the statement. If it does not answer, or
 * knows nothing of it, twice in a row, then the connection is broken off: what is on it fails like on one that was lost, and
 * the pool lets it go.
 */
import type { Socket } from 'node:net';
import pg from 'pg';

const LOOK_EVERY_MS = 5_000;
const LOOK_WITHIN_MS = 3_000;
const LOOKS = 2;

/** A statement that a hung Postgres does not answer fails within this time. */
export const SILENT_WITHIN_MS = LOOKS * (LOOK_EVERY_MS + LOOK_WITHIN_MS);

export type Watched = {
  readonly connection: pg.Client;
  readonly url: string;
  /** Of the server's process behind the connection. */
  readonly pid: number;
};

type Answered = (error: Error | null, result: unknown) => void;
type Query = (statement: unknown, answered?: Answered) => unknown;

/** The driver is asked in two ways: by knex with a callback, by storage/log/stored-records.ts for a promise. */
export function watchForSilence(watched: Watched): void {
  const { connection } = watched;
  const query: Query = connection.query.bind(connection);
  const watchedQuery: Query = (statement, answered) => {
    const forget = watchStatement(watched);
    if (!answered) return (query(statement) as Promise<unknown>).finally(forget);
    return query(statement, (error, result) => {
      forget();
      answered(error, result);
    });
  };
  Object.assign(connection, { query: watchedQuery });
}

/** Answers how to end the watch, when the statement was answered. */
function watchStatement(watched: Watched): () => void {
  let is_over = false;
  let timer: NodeJS.Timeout;
  const lookLater = (failures: number) => {
    timer = setTimeout(() => void look(failures), LOOK_EVERY_MS);
  };
  const look = async (failures: number) => {
    const is_at_work = await isAtWork(watched);
    if (is_over) return;
    if (is_at_work) lookLater(0);
    else if (failures + 1 < LOOKS) lookLater(failures + 1);
    else breakOff(watched.connection);
  };
  lookLater(0);
  return () => {
    is_over = true;
    clearTimeout(timer);
  };
}

/** A server that refuses us one more connection lives: what can be told of the statement is then told at a later look. */
async function isAtWork({ url, pid }: Watched): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, application_name: 'farthing watch' });
  client.on('error', () => undefined); // What fails, fails the question too.
  const late = setTimeout(() => streamOf(client).destroy(new Error('no answer')), LOOK_WITHIN_MS);
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
  streamOf(connection).destroy(Object.assign(error, { code: 'ETIMEDOUT' }));
}

/** The driver offers no way to break a connection off without asking the server. */
function streamOf(client: pg.Client): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream;
}
