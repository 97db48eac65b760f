/**
 * Reads which records changed since the previous read, and the progress of the stores, in one statement that concurrent callers share. It
 * begins after each of its callers has requested it, so an answer sees everything that was committed before its query
 * (docs/decisions/0007-cached-answers.md). If no other process writes to the database, the last snapshot remains valid until this process
 * sends another statement.
 *
 * A change writes the id of its record and of its transaction (sql/postgres/0170-record-changes.sql). A record has changed if the current
 * Postgres snapshot sees its transaction and the previous one did not, whichever transaction began first.
 */

import { runAsSystem } from '../foundation/request-context.ts';
import type { Database, Transaction } from '../foundation/stores.ts';
import { runUnrecorded } from '../postgres/interceptors/dependency-recorder.ts';
import { CHANGES_STATEMENT_NAME, getOwnStatements } from '../postgres/interceptors/own-statements.ts';
import { type SliceState, STATE_COLUMNS, toSliceState } from '../progress/slice-state.ts';
import { getUsageFeed } from '../usage/usage-feed.ts';

export type ChangeSnapshot = {
  /** 1, 2, 3 … in this process. */
  readonly number: number;
  readonly progress: readonly SliceState[];
  /** Entries that were gathered before the snapshot with this number may be outdated. */
  readonly known_since: number;
  /** Number of the last snapshot that saw a change of any record. */
  readonly last_change: number;
  /** Number of the snapshot that saw the change of a record, for changes since `known_since`. */
  readonly changed: ReadonlyMap<string, number>;
  /** Like `changed`, without the changes of excluded transactions (`leaveOut`). */
  readonly changed_by_others: ReadonlyMap<string, number>;
};

/** After more changes, all earlier entries count as outdated. */
const CHANGES_MAX = 500_000;
/** A slower read indicates a busy database or machine, on which frequent reads would delay all others. */
const QUICK_MS = 2;
const REST_MS = 1;

/** Maximum delay before manual writes to an exclusive database are seen. */
const FRESH_MS = 50;
const RENEWED_MS = 20;
/** While reads are frequent, the connection is retained for this long. */
const RELEASED_AFTER_MS = 100;

/** One row of texts, which rarely differ from the previous read: parsing the columns each time would cost as much as an answer. */
const CHANGES_SQL = `
  with last as (select coalesce($1::pg_snapshot, pg_current_snapshot()) as seen)
  select pg_current_snapshot()::text as snapshot, (select horizon::text from record_changes_kept) as horizon,
         (select json_agg(json_build_array(r.id, r.xids))::text
            from (select r.id, json_agg(r.xid::text) as xids from last, record_changes r
                   where r.xid >= pg_snapshot_xmin(last.seen) and not pg_visible_in_snapshot(r.xid, last.seen)
                   group by r.id) as r) as changed,
         (select json_agg(s)::text
            from (select ${STATE_COLUMNS} from slices order by partition) as s) as progress`;

/** `changed` and `progress` are JSON; null if empty. */
type ChangesRow = { snapshot: string; horizon: string; changed: string | null; progress: string | null };

class ChangeTracker {
  #snapshot: string | null = null;
  #number = 0;
  #known_since = 1;
  #last_change = 0;
  readonly #changed = new Map<string, number>();
  readonly #changed_by_others = new Map<string, number>();
  /** Ids of excluded transactions. */
  readonly #left_out = new Set<string>();
  /** Text of the last read; undefined after a reported move was added. */
  #progress_text: string | null | undefined = null;
  #progress: readonly SliceState[] = [];
  /** Moves that were reported during a read, which may have run before them. */
  readonly #moved: SliceState[] = [];

  async next(connection: ChangesConnection): Promise<ChangeSnapshot> {
    this.#moved.length = 0;
    // Prepared, because planning costs more than execution.
    const { rows } = await connection.query({
      name: CHANGES_STATEMENT_NAME,
      text: CHANGES_SQL,
      values: [this.#snapshot],
    });
    const [{ snapshot, horizon, changed, progress }] = rows as [ChangesRow];
    this.#number++;
    // Changes between the two snapshots may have been purged.
    if (this.#snapshot !== null && BigInt(horizon) > parseXmin(this.#snapshot)) this.#reset();
    this.#snapshot = snapshot;
    if (changed !== null) {
      for (const [id, xids] of JSON.parse(changed) as [id: string, xids: string[]][]) this.#recordChange(id, xids);
      this.#last_change = this.#number;
    }
    // Their changes are visible now and are not reported again.
    for (const xid of this.#left_out) if (BigInt(xid) < parseXmin(snapshot)) this.#left_out.delete(xid);
    if (this.#changed.size > CHANGES_MAX) this.#reset();
    if (progress !== this.#progress_text) {
      this.#progress_text = progress;
      this.#progress =
        progress === null ? [] : (JSON.parse(progress) as Parameters<typeof toSliceState>[0][]).map(toSliceState);
    }
    for (const moved of this.#moved) this.#moveFrom(this.#findPosition(moved), moved);
    return this.current();
  }

  /** Adds a reported move of a partition to the snapshot, as a read would; false if the partition has another worker than is known. */
  moved(state: SliceState): boolean {
    const known = this.#findPosition(state);
    if (known === undefined) return false;
    if (this.#moveFrom(known, state)) {
      this.#moved.push(state);
      this.#number++;
    }
    return true;
  }

  #findPosition({ partition, epoch }: SliceState): SliceState | undefined {
    return this.#progress.find((known) => known.partition === partition && known.epoch === epoch);
  }

  /** False if the partition is already at this offset or further. */
  #moveFrom(known: SliceState | undefined, state: SliceState): boolean {
    if (known === undefined || known.next_offset >= state.next_offset) return false;
    this.#progress = this.#progress.map((each) => (each === known ? state : each));
    this.#progress_text = undefined;
    return true;
  }

  current(): ChangeSnapshot {
    return {
      number: this.#number,
      progress: this.#progress,
      known_since: this.#known_since,
      last_change: this.#last_change,
      changed: this.#changed,
      changed_by_others: this.#changed_by_others,
    };
  }

  leaveOut(xid: string): void {
    this.#left_out.add(xid);
  }

  #recordChange(id: string, xids: readonly string[]): void {
    this.#changed.set(id, this.#number);
    if (xids.some((xid) => !this.#left_out.has(xid))) this.#changed_by_others.set(id, this.#number);
  }

  #reset(): void {
    this.#changed.clear();
    this.#changed_by_others.clear();
    this.#known_since = this.#number;
  }
}

type PreparedChangesStatement = { name: string; text: string; values: unknown[] };
type ChangesConnection = { query(statement: PreparedChangesStatement): Promise<{ rows: unknown[] }> };

function parseXmin(snapshot: string): bigint {
  return BigInt(snapshot.split(':')[0]!);
}

/** Callback of a caller, without a promise for each of thousands in a second. Null if the read failed. */
type ChangesCallback = (changes: ChangeSnapshot | null, error?: unknown) => void;

/** `answered`: number of this process's answered statements when the read began. */
type FreshSnapshot = { readonly snapshot: ChangeSnapshot; readonly began_ms: number; readonly answered: number };

/**
 * Runs one read at a time. A caller that arrives during a read gets the next one, so each read begins after all its callers. But if nothing
 * can have changed since a read began, it also serves later callers while it is fresh.
 */
class ChangeFeed {
  readonly #database: Database;
  readonly #tracker = new ChangeTracker();
  #waiting: ChangesCallback[] = [];
  #isOut = false;
  /** Held while callers wait, and briefly afterwards: acquiring it for each read costs as much as the read. */
  #connection: ChangesConnection | null = null;
  #leaving: NodeJS.Timeout | null = null;
  #last: FreshSnapshot | null = null;

  constructor(database: Database) {
    this.#database = database;
  }

  leaveOut(xid: string): void {
    this.#tracker.leaveOut(xid);
  }

  /** Adds the move to the fresh snapshot; false if there is no snapshot that it can be added to. */
  moved(state: SliceState): boolean {
    if (this.#last === null || !this.#tracker.moved(state)) return false;
    this.#last = { ...this.#last, snapshot: this.#tracker.current() };
    return true;
  }

  request(waiting: ChangesCallback): void {
    const standing = this.#standing();
    if (standing === null) return this.#wait(waiting);
    // Starts the next read before the snapshot expires, so that no caller waits for it.
    if (performance.now() - standing.began_ms > RENEWED_MS && !this.#isOut) this.#wait(() => undefined);
    waiting(standing.snapshot);
  }

  #wait(waiting: ChangesCallback): void {
    this.#waiting.push(waiting);
    if (!this.#isOut) void runUnrecorded(() => runAsSystem(() => this.#work()));
  }

  /** The last snapshot, if nothing can have changed since its read began, except by writes of other processes. */
  #standing(): FreshSnapshot | null {
    const own = getOwnStatements(this.#database);
    if (own === undefined || this.#last === null) return null;
    if (own.out > 0 || own.answered !== this.#last.answered) return null;
    const now_ms = performance.now();
    return now_ms >= own.unsure_until_ms && now_ms - this.#last.began_ms < FRESH_MS ? this.#last : null;
  }

  async #work(): Promise<void> {
    this.#isOut = true;
    if (this.#leaving !== null) clearTimeout(this.#leaving);
    while (this.#waiting.length > 0) {
      const own = getOwnStatements(this.#database);
      // Collects the callers of this event-loop tick. This is unnecessary if no statement is in flight: they can share the result.
      if (own === undefined || own.out > 0) await new Promise((resolve) => setImmediate(resolve));
      const began = performance.now();
      let callbacks = this.#waiting;
      this.#waiting = [];
      let changes: ChangeSnapshot | null = null;
      let failure: unknown;
      const answered = own?.answered ?? 0;
      try {
        this.#connection ??= (await this.#database.client.acquireConnection()) as ChangesConnection;
        changes = await this.#tracker.next(this.#connection);
        await getUsageFeed(this.#database)?.bring(changes.progress);
        // Includes the moves that were reported meanwhile.
        changes = this.#tracker.current();
        this.#last = { snapshot: changes, began_ms: began, answered };
        if (this.#standing() !== null) {
          // The result also serves callers that arrived meanwhile.
          callbacks = [...callbacks, ...this.#waiting];
          this.#waiting = [];
        }
      } catch (error) {
        failure = error;
        this.#last = null;
        await this.#leave();
      }
      deliver(callbacks, changes, failure);
      const isQuick = performance.now() - began < QUICK_MS;
      if (this.#waiting.length > 0 && !isQuick) await new Promise((resolve) => setTimeout(resolve, REST_MS));
    }
    if (getOwnStatements(this.#database) === undefined) await this.#leave();
    else this.#leaving = setTimeout(() => void this.#leave(), RELEASED_AFTER_MS).unref();
    this.#isOut = false;
    // Serves callers that arrived while the connection was released.
    if (this.#waiting.length > 0) return this.#work();
  }

  async #leave(): Promise<void> {
    const connection = this.#connection;
    this.#connection = null;
    if (connection !== null) await this.#database.client.releaseConnection(connection);
  }
}

/** A portion takes less than half a millisecond. */
const PORTION = 4;

/**
 * Calls the callbacks in portions, all before other work. Deferred work of a callback, such as node's HTTP server does for each answer,
 * runs after its portion and not after the last callback. The last caller waits only for those before it.
 */
function deliver(callbacks: readonly ChangesCallback[], changes: ChangeSnapshot | null, failure: unknown): void {
  for (let from = 0; from < callbacks.length; from += PORTION) {
    const portion = callbacks.slice(from, from + PORTION);
    setImmediate(() => {
      for (const callback of portion) callback(changes, failure);
    });
  }
}

const changeFeeds = new WeakMap<Database, ChangeFeed>();

/** Requests the next snapshot of `database`, the pool of the process. `waiting` must not throw. */
export function requestChanges(database: Database, waiting: ChangesCallback): void {
  getChangeFeed(database).request(waiting);
}

function getChangeFeed(database: Database): ChangeFeed {
  let feed = changeFeeds.get(database);
  if (feed === undefined) {
    const made = new ChangeFeed(database);
    changeFeeds.set(database, (feed = made));
    const own = getOwnStatements(database);
    if (own !== undefined) own.moved = (row) => made.moved(toSliceState(row));
  }
  return feed;
}

export function readChanges(database: Database): Promise<ChangeSnapshot> {
  return new Promise((seen, failed) =>
    requestChanges(database, (changes, error) => (changes === null ? failed(error) : seen(changes))),
  );
}

/** Excludes the writes of this transaction from `changed_by_others`; must be called before the commit. */
export async function excludeOwnWrites(database: Database, transaction: Transaction): Promise<void> {
  const { rows } = await transaction.raw('select pg_current_xact_id()::text as xid');
  getChangeFeed(database).leaveOut(rows[0].xid);
}

/** Deletes the changes that existed at the previous run; returns their number. */
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
