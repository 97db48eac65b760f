/**
 * Listens to a Postgres channel (LISTEN) on one connection outside the pool, which is restored whenever it is lost. Notifications
 * during an outage are lost, so `begun` is called each time listening starts.
 */
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { watchForUnresponsivePostgres } from '../interceptors/unresponsive-server.ts';

type ListenOptions = {
  /** A name that needs no quotes. */
  readonly channel: string;
  heard(payload: string): void;
  begun(): void;
  /** Reports that the connection was lost or cannot be opened; it is opened again. */
  lost(error: Error): void;
};

export type PostgresListener = { close(): Promise<void> };

const AGAIN_AFTER_MS = 500;
/** Time between pings: without traffic, a dead connection would not be noticed. */
const PING_INTERVAL_MS = 5_000;
const CONNECTED_WITHIN_MS = 10_000;

export function listen(url: string, listening: ListenOptions): PostgresListener {
  const closing = new AbortController();
  const ended = hearAgainAndAgain(url, listening, closing.signal);
  return {
    close: () => {
      closing.abort();
      return ended;
    },
  };
}

async function hearAgainAndAgain(url: string, listening: ListenOptions, closing: AbortSignal): Promise<void> {
  while (!closing.aborted) {
    try {
      await hear(url, listening, closing);
    } catch (error) {
      if (!closing.aborted) listening.lost(error as Error);
    }
    // An abort ends the pause.
    await setTimeout(AGAIN_AFTER_MS, undefined, { signal: closing }).catch(() => undefined);
  }
}

/** Listens until the connection ends: with an error, unless we close it. */
async function hear(url: string, { channel, heard, begun }: ListenOptions, closing: AbortSignal): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'farthing listener',
    connectionTimeoutMillis: CONNECTED_WITHIN_MS,
    keepAlive: true,
  });
  let stop = () => {};
  const over = new Promise<never>((_, reject) => {
    client.once('error', reject);
    client.once('end', () => reject(new Error('the connection of the listener has ended')));
    stop = () => reject(new Error('closing'));
  });
  closing.addEventListener('abort', stop);
  client.on('error', () => undefined); // The first error ended it.
  client.on('notification', ({ payload }) => heard(payload ?? ''));
  let asking: NodeJS.Timeout | undefined;
  try {
    await Promise.race([client.connect(), over]);
    const { rows } = await Promise.race([client.query('select pg_backend_pid() as pid'), over]);
    watchForUnresponsivePostgres({ connection: client, url, pid: rows[0].pid });
    await Promise.race([client.query(`listen ${channel}`), over]);
    begun();
    asking = setInterval(() => void client.query('select 1').catch(() => undefined), PING_INTERVAL_MS);
    await over;
  } finally {
    closing.removeEventListener('abort', stop);
    clearInterval(asking);
    over.catch(() => undefined);
    void client.end().catch(() => undefined);
  }
}
