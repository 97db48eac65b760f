/**
 * A database whose statements all go to one connection of the pool, without a transaction. Concurrent reads are then sent in one write
 * (interceptors/coalesced-writes.ts), and no statement begins or ends a transaction.
 */
import knex, { type Knex } from 'knex';
import type { Database } from '../../foundation/stores.ts';

/** The database of each connection, because it is expensive to make. */
const databases = new WeakMap<object, Knex>();
const connectedDatabases = new WeakSet<Database>();

/** Whether all statements of the database go to one connection. */
export function isConnected(database: Database): boolean {
  return Boolean(database.isTransaction) || connectedDatabases.has(database);
}

/** Runs reads on one connection of the pool. All of them have ended when `read` ends. */
export async function runConnected<Answer>(
  postgres: Database,
  read: (connected: Database) => Promise<Answer>,
): Promise<Answer> {
  const { client } = postgres;
  const connection: object = await client.acquireConnection();
  try {
    let connected = databases.get(connection);
    if (!connected) databases.set(connection, (connected = connectTo(connection, postgres)));
    return await read(connected);
  } finally {
    await client.releaseConnection(connection);
  }
}

function connectTo(connection: object, postgres: Database): Knex {
  const connectionPool = {
    acquire: () => ({ promise: Promise.resolve(connection) }),
    release: () => true,
    destroy: async () => undefined,
    numFree: () => 0,
    numUsed: () => 1,
    numPendingAcquires: () => 0,
  };
  const connected = knex({ client: 'pg', connectionPool: connectionPool as unknown as Knex.TarnPoolLike });
  connected.on('query', (statement) => void postgres.client.emit('query', statement));
  // A transaction needs a connection of its own, because reads of others run on this one.
  const begin = (...input: Parameters<Knex['transaction']>) => postgres.transaction(...input);
  Object.defineProperty(connected, 'transaction', { value: begin });
  connectedDatabases.add(connected);
  return connected;
}
