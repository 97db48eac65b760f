/**
 * A look at Postgres for whoever keeps in memory what was made of its records: which of them have changed since the look before, and
 * how far the stores are, in one statement that all who ask at one time share. It begins after each of them has asked, so what
 * was committed before a question is known to its answer (docs/decisions/0022-running-charges.md).
 *
 * A change writes the id of its record and of its transaction (sql/postgres/0170-record-changes.sql). Those that this look's snapshot
 * sees, and that of the last look did not, are what has changed: whichever transaction began first.
 */

import { forEverybody } from '../caller.ts';
import { type SliceState, stateOf } from '../progress/slice-state.ts';
import type { Database, Transaction } from '../stores.ts';
import { feedOf } from '../usage/usage-feed.ts';
import { unnoted } from './noting.ts';

export type Look = {
  /** 1, 2, 3 … of this process. */
  readonly number: number;
  readonly progress: readonly SliceState[];
  /** What was gathered before the look of this number is not known to hold. */
  readonly known_since: number;
  /** The last one that saw a change of any record. */
  readonly last_change: number;
  /** In which look a record was seen to have changed, of those since `known_since`. */
  readonly changed: ReadonlyMap<string, number>;
  /** The same without what the transactions have written that were left out (`leaveOut`). */
  readonly changed_by_others: ReadonlyMap<string, number>;
};

/** Of more changes than these what was kept is forgotten. */
const CHANGES_MAX = 500_000;
/** A look that takes longer is that of a busy database, and of a machine on which each one that comes too soon makes the others later. */
const QUICK_MS = 2;
const REST_MS = 1;

const LOOK = `
  with last as (select coalesce($1::pg_snapshot, pg_current_snapshot()) as seen)
  select s.*, c.snapshot, c.horizon, c.changed
    from (select pg_current_snapshot()::text as snapshot, (select horizon::text from record_changes_kept) as horizon,
                 (select coalesce(json_agg(json_build_array(r.id, r.xids)), '[]')
                    from (select r.id, json_agg(r.xid::text) as xids from last, record_changes r
                           where r.xid >= pg_snapshot_xmin(last.seen) and not pg_visible_in_snapshot(r.xid, last.seen)
                           group by r.id) as r) as changed) as c
    left join slices s on true`;

type Seen = { snapshot: string; horizon: string; changed: [id: string, xids: string[]][] };

class Looks {
  #snapshot: string | null = null;
  #number = 0;
  #known_since = 1;
  #last_change = 0;
  readonly #changed = new Map<string, number>();
  readonly #changed_by_others = new Map<string, number>();
  /** Numbers of transactions. */
  readonly #left_out = new Set<string>();

  async next(connection: Connection): Promise<Look> {
    // Prepared: to plan it costs more than to answer it.
    const { rows } = await connection.query({ name: 'look', text: LOOK, values: [this.#snapshot] });
    const [{ snapshot, horizon, changed }] = rows as [Seen];
    this.#number++;
    // What came between the two may have been forgotten there.
    if (this.#snapshot !== null && BigInt(horizon) > xminOf(this.#snapshot)) this.#forget();
    this.#snapshot = snapshot;
    for (const [id, xids] of changed) this.#note(id, xids);
    // What they have changed is visible now, and is not told again.
    for (const xid of this.#left_out) if (BigInt(xid) < xminOf(snapshot)) this.#left_out.delete(xid);
    if (changed.length > 0) this.#last_change = this.#number;
    if (this.#changed.size > CHANGES_MAX) this.#forget();
    const progress = (rows as Parameters<typeof stateOf>[0][])
      .filter(({ partition }) => partition !== null)
      .map(stateOf);
    return {
      number: this.#number,
      progress,
      known_since: this.#known_since,
      last_change: this.#last_change,
      changed: this.#changed,
      changed_by_others: this.#changed_by_others,
    };
  }

  leaveOut(xid: string): void {
    this.#left_out.add(xid);
  }

  #note(id: string, xids: readonly string[]): void {
    this.#changed.set(id, this.#number);
    if (xids.some((xid) => !this.#left_out.has(xid))) this.#changed_by_others.set(id, this.#number);
  }

  #forget(): void {
    this.#changed.clear();
    this.#changed_by_others.clear();
    this.#known_since = this.#number;
  }
}

type Prepared = { name: string; text: string; values: unknown[] };
type Connection = { query(statement: Prepared): Promise<{ rows: unknown[] }> };

function xminOf(snapshot: string): bigint {
  return BigInt(snapshot.split(':')[0]!);
}

/** Who has asked for a look: told of it in its own turn, without a promise for each of thousands in a second. Null where it failed. */
type Waiting = (look: Look | null, error?: unknown) => void;

/** One look at a time: who asks while it is out is told of the next one, so that each begins after all whom it answers have asked. */
class LookDesk {
  readonly #database: Database;
  readonly #looks = new Looks();
  #waiting: Waiting[] = [];
  #isOut = false;
  /** While anybody waits: to ask the pool for each look costs as much as to answer a read. */
  #connection: Connection | null = null;

  constructor(database: Database) {
    this.#database = database;
  }

  leaveOut(xid: string): void {
    this.#looks.leaveOut(xid);
  }

  ask(waiting: Waiting): void {
    this.#waiting.push(waiting);
    if (!this.#isOut) void unnoted(() => forEverybody(() => this.#work()));
  }

  async #work(): Promise<void> {
    this.#isOut = true;
    while (this.#waiting.length > 0) {
      // Who is about to ask in this round of the event loop is taken along.
      await new Promise((resolve) => setImmediate(resolve));
      const began = performance.now();
      const asked = this.#waiting;
      this.#waiting = [];
      let look: Look | null = null;
      let failure: unknown;
      try {
        this.#connection ??= (await this.#database.client.acquireConnection()) as Connection;
        look = await this.#looks.next(this.#connection);
        await feedOf(this.#database)?.bring(look.progress);
      } catch (error) {
        failure = error;
        await this.#leave();
      }
      for (const told of asked) told(look, failure);
      const isQuick = performance.now() - began < QUICK_MS;
      if (this.#waiting.length > 0 && !isQuick) await new Promise((resolve) => setTimeout(resolve, REST_MS));
    }
    await this.#leave();
    this.#isOut = false;
    // Who has asked while the connection was given back.
    if (this.#waiting.length > 0) return this.#work();
  }

  async #leave(): Promise<void> {
    const connection = this.#connection;
    this.#connection = null;
    if (connection !== null) await this.#database.client.releaseConnection(connection);
  }
}

const desks = new WeakMap<Database, LookDesk>();

/** The next one, of `database`, the pool of the process. `waiting` does not throw. */
export function whenLooked(database: Database, waiting: Waiting): void {
  deskOf(database).ask(waiting);
}

function deskOf(database: Database): LookDesk {
  let desk = desks.get(database);
  if (desk === undefined) desks.set(database, (desk = new LookDesk(database)));
  return desk;
}

/** The same for who waits for it. */
export function nextLook(database: Database): Promise<Look> {
  return new Promise((seen, failed) =>
    whenLooked(database, (look, error) => (look === null ? failed(error) : seen(look))),
  );
}

/** What this transaction writes is no change to whoever asks for changes by others; to be said before it is committed. */
export async function leaveOut(database: Database, transaction: Transaction): Promise<void> {
  const { rows } = await transaction.raw('select pg_current_xact_id()::text as xid');
  deskOf(database).leaveOut(rows[0].xid);
}

/** Forgets the changes that were there when this was done the last time. Answers how many. */
export async function purgeRecordChanges(database: Database): Promise<number> {
  return database.transaction(async (transaction) => {
    await transaction.raw(
      `update record_changes_kept set horizon = next, next = pg_snapshot_xmin(pg_current_snapshot())`,
    );
    const answer = await transaction.raw(
      'delete from record_changes where xid < (select horizon from record_changes_kept)',
    );
    return answer.rowCount ?? 0;
  });
}
