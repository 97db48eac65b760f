/**
 * A look at Postgres for whoever keeps in memory what was made of its records: which of them have changed since the look before, and
 * how far the stores are, in one statement that all who ask at one time share. It begins after each of them has asked, so what
 * was committed before a question is known to its answer (docs/decisions/0007-cached-answers.md). Where nobody else writes to the database, the
 * last look still tells all while this process has asked for nothing since (docs/decisions/0007-cached-answers.md).
 *
 * A change writes the id of its record and of its transaction (sql/postgres/0170-record-changes.sql). Those that this look's snapshot
 * sees, and that of the last look did not, are what has changed: whichever transaction began first.
 */

import { CHANGES_STATEMENT_NAME, getOwnStatements } from '../postgres/own-statements.ts';
import { type SliceState, STATE_COLUMNS, toSliceState } from '../progress/slice-state.ts';
import { runAsSystem } from '../request-context.ts';
import type { Database, Transaction } from '../stores.ts';
import { getUsageFeed } from '../usage/usage-feed.ts';
import { runUnrecorded } from './dependency-recorder.ts';

export type ChangeSnapshot = {
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

/** Whoever writes to a database that is ours alone, by hand, is heard of no later than this. */
const FRESH_MS = 50;
const RENEWED_MS = 20;
/** For so long a connection is kept for the next look, where looks are asked for again and again. */
const RELEASED_AFTER_MS = 100;

/** One row of texts, of which hardly any says anything else than at the look before: to read the columns again costs what an answer does. */
const CHANGES_SQL = `
  with last as (select coalesce($1::pg_snapshot, pg_current_snapshot()) as seen)
  select pg_current_snapshot()::text as snapshot, (select horizon::text from record_changes_kept) as horizon,
         (select json_agg(json_build_array(r.id, r.xids))::text
            from (select r.id, json_agg(r.xid::text) as xids from last, record_changes r
                   where r.xid >= pg_snapshot_xmin(last.seen) and not pg_visible_in_snapshot(r.xid, last.seen)
                   group by r.id) as r) as changed,
         (select json_agg(s)::text
            from (select ${STATE_COLUMNS} from slices order by partition) as s) as progress`;

/** `changed` and `progress` are JSON, null where there is none. */
type ChangesRow = { snapshot: string; horizon: string; changed: string | null; progress: string | null };

class ChangeTracker {
  #snapshot: string | null = null;
  #number = 0;
  #known_since = 1;
  #last_change = 0;
  readonly #changed = new Map<string, number>();
  readonly #changed_by_others = new Map<string, number>();
  /** Numbers of transactions. */
  readonly #left_out = new Set<string>();
  /** As it was read; undefined where what was told to have moved has been added. */
  #progress_text: string | null | undefined = null;
  #progress: readonly SliceState[] = [];
  /** What was told to have moved while a look is out, which may have been answered before. */
  readonly #moved: SliceState[] = [];

  async next(connection: ChangesConnection): Promise<ChangeSnapshot> {
    this.#moved.length = 0;
    // Prepared: to plan it costs more than to answer it.
    const { rows } = await connection.query({
      name: CHANGES_STATEMENT_NAME,
      text: CHANGES_SQL,
      values: [this.#snapshot],
    });
    const [{ snapshot, horizon, changed, progress }] = rows as [ChangesRow];
    this.#number++;
    // What came between the two may have been forgotten there.
    if (this.#snapshot !== null && BigInt(horizon) > parseXmin(this.#snapshot)) this.#reset();
    this.#snapshot = snapshot;
    if (changed !== null) {
      for (const [id, xids] of JSON.parse(changed) as [id: string, xids: string[]][]) this.#recordChange(id, xids);
      this.#last_change = this.#number;
    }
    // What they have changed is visible now, and is not told again.
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

  /** From now on it is told as a look of now would, where nothing else has changed; false where the partition has another worker than is known. */
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

  /** False where it is not further than is known. */
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

/** Who has asked for a look: told of it in its own turn, without a promise for each of thousands in a second. Null where it failed. */
type ChangesCallback = (changes: ChangeSnapshot | null, error?: unknown) => void;

/** `answered`: of the statements of this process, when it began. */
type FreshSnapshot = { readonly snapshot: ChangeSnapshot; readonly began_ms: number; readonly answered: number };

/**
 * One look at a time: who asks while it is out is told of the next one, so that each begins after all whom it answers have asked; but where nothing can have
 * changed since it began, it is theirs as well, and that of all who ask while it stands.
 */
class ChangeFeed {
  readonly #database: Database;
  readonly #tracker = new ChangeTracker();
  #waiting: ChangesCallback[] = [];
  #isOut = false;
  /** While anybody waits, or has a moment ago: to ask the pool for each look costs as much as to answer a read. */
  #connection: ChangesConnection | null = null;
  #leaving: NodeJS.Timeout | null = null;
  #last: FreshSnapshot | null = null;

  constructor(database: Database) {
    this.#database = database;
  }

  leaveOut(xid: string): void {
    this.#tracker.leaveOut(xid);
  }

  /** The one that stands says that, too, from now on; false where none does that it can be added to. */
  moved(state: SliceState): boolean {
    if (this.#last === null || !this.#tracker.moved(state)) return false;
    this.#last = { ...this.#last, snapshot: this.#tracker.current() };
    return true;
  }

  request(waiting: ChangesCallback): void {
    const standing = this.#standing();
    if (standing === null) return this.#wait(waiting);
    // Before it stands no longer another one is there, for which nobody has waited.
    if (performance.now() - standing.began_ms > RENEWED_MS && !this.#isOut) this.#wait(() => undefined);
    waiting(standing.snapshot);
  }

  #wait(waiting: ChangesCallback): void {
    this.#waiting.push(waiting);
    if (!this.#isOut) void runUnrecorded(() => runAsSystem(() => this.#work()));
  }

  /** The last look, where nothing can have changed since it began but by the hand of somebody who is not of this process. */
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
      // Who is about to ask in this round of the event loop is taken along; where nothing is out he is told of it all the same.
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
        // With what was told to have moved since.
        changes = this.#tracker.current();
        this.#last = { snapshot: changes, began_ms: began, answered };
        if (this.#standing() !== null) {
          // It is that of who has asked meanwhile, too.
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
    // Who has asked while the connection was given back.
    if (this.#waiting.length > 0) return this.#work();
  }

  async #leave(): Promise<void> {
    const connection = this.#connection;
    this.#connection = null;
    if (connection !== null) await this.#database.client.releaseConnection(connection);
  }
}

/** What one portion does at one time is less than half a millisecond. */
const PORTION = 4;

/**
 * In portions, all of them before anything else has its turn: what one does at the end of its work, as node's HTTP server does with each
 * answer, is not put off until the last of them has been told, and who has asked last waits for no others than those before.
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

/** The next one, of `database`, the pool of the process. `waiting` does not throw. */
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

/** The same for who waits for it. */
export function readChanges(database: Database): Promise<ChangeSnapshot> {
  return new Promise((seen, failed) =>
    requestChanges(database, (changes, error) => (changes === null ? failed(error) : seen(changes))),
  );
}

/** What this transaction writes is no change to whoever asks for changes by others; to be said before it is committed. */
export async function excludeOwnWrites(database: Database, transaction: Transaction): Promise<void> {
  const { rows } = await transaction.raw('select pg_current_xact_id()::text as xid');
  getChangeFeed(database).leaveOut(rows[0].xid);
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
