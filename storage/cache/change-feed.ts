/**
 * Reads which records changed since the previous read, and the progress of the stores, in one statement
 * (docs/decisions/0007-cached-answers.md). `readChanges` starts its read after the call, so it sees everything that was committed before.
 * The snapshot of `requestRecentChanges` sees all writes of this process, except slices, which the pipeline confirms to the usage cache; it may
 * lack commits of other processes of the last 50 ms.
 *
 * A change writes the id of its record and of its transaction (sql/postgres/0170-record-changes.sql). A record has changed if the current
 * Postgres snapshot sees its transaction and the previous one did not, whichever transaction began first.
 */

import { formatUs } from '../../core/foundation/time/instant.ts';
import { BatchLoader } from '../concurrency/batch-loader.ts';
import { runAsSystem } from '../foundation/request-context.ts';
import type { Database, Stores, Transaction } from '../foundation/stores.ts';
import type { EventLog } from '../log/log.ts';
import { runUnrecorded } from '../postgres/interceptors/dependency-recorder.ts';
import { getOwnWrites, type OwnWrites } from '../postgres/interceptors/own-writes.ts';
import { readUrl } from '../postgres/pool/postgres.ts';
import type { PartitionPosition } from '../progress/partition-progress.ts';
import { loadLogFreshness } from '../usage/usage.ts';
import { getUsageFeed } from '../usage/usage-feed.ts';

export type ChangeSnapshot = {
  /** Counts the snapshots of this process from 1. */
  readonly number: number;
  readonly progress: readonly PartitionPosition[];
  /** Number of the snapshot since which all changes are known. Entries that were computed before it may be outdated. */
  readonly known_since: number;
  /** Number of the last snapshot that saw a change of any record. */
  readonly last_change: number;
  /** Number of the snapshot that saw the change of a record, for changes since `known_since`. */
  readonly changed: ReadonlyMap<string, number>;
  /** Like `changed`, but without the changes of excluded transactions (`leaveOut`). */
  readonly changed_by_others: ReadonlyMap<string, number>;
};

/** Maximum number of remembered changes. If there are more, all earlier entries count as outdated. */
const CHANGES_MAX = 500_000;
/** Pause between two reads while callers wait. */
const REST_MS = 1;

/** Maximum age of a recent snapshot. */
const RECENT_MS = 50;
/**
 * While reads are frequent, a snapshot of this age is renewed in the background, so that callers need not wait for a
 * new one.
 */
const RENEWED_MS = 20;
/** Maximum age of the cached lag of the log. While the log answers slowly, callers use the cached value up to this age, and then wait. */
const FRESHNESS_MS = 500;

/**
 * The result is one row of texts. A text is parsed only if it differs from that of the previous read, which is rare: parsing the columns
 * each time would cost as much as an answer.
 */
const CHANGES_SQL = `
  select pg_current_snapshot()::text as snapshot, (select horizon::text from record_changes_kept) as horizon,
         (select json_agg(json_build_array(r.id, r.xids))::text
            from (select r.id, json_agg(r.xid::text) as xids from record_changes r
                   where r.xid >= pg_snapshot_xmin(last.seen) and not pg_visible_in_snapshot(r.xid, last.seen)
                   group by r.id) as r) as changed,
         (select json_agg(json_build_array(partition, epoch::text, next_offset::text, rebuilds::text) order by partition)::text
            from slices) as progress
    from (select coalesce($1::pg_snapshot, pg_current_snapshot()) as seen) as last`;

/** Columns as text. `changed` and `progress` are JSON; null if nothing changed. */
type ChangesRow = { snapshot: string; horizon: string; changed: string | null; progress: string | null };

type PositionColumns = [partition: number, epoch: string, next_offset: string, rebuilds: string];

function toPosition([partition, epoch, next_offset, rebuilds]: PositionColumns): PartitionPosition {
  return { partition, epoch: BigInt(epoch), next_offset: BigInt(next_offset), rebuilds: BigInt(rebuilds) };
}

class ChangeTracker {
  #snapshot: string | null = null;
  #number = 0;
  #known_since = 1;
  #last_change = 0;
  #changed = new Map<string, number>();
  #changed_by_others = new Map<string, number>();
  /** Ids of excluded transactions. */
  readonly #left_out = new Set<string>();
  #progress_text: string | null = null;
  #progress: readonly PartitionPosition[] = [];

  /** Reads the changes since the previous call. Calls must not overlap. */
  async next(connection: ChangesConnection): Promise<ChangeSnapshot> {
    // Prepared, because planning costs more than execution.
    const statement = { name: 'farthing_changes', text: CHANGES_SQL, values: [this.#snapshot] };
    const { rows } = await connection.query(statement);
    const [{ snapshot, horizon, changed, progress }] = rows as [ChangesRow];
    this.#number++;
    // If changes between the two snapshots may have been purged, all earlier entries count as outdated.
    if (this.#snapshot !== null && BigInt(horizon) > parseXmin(this.#snapshot)) this.#reset();
    this.#snapshot = snapshot;
    if (changed !== null) {
      for (const [id, xids] of JSON.parse(changed) as [id: string, xids: string[]][]) this.#recordChange(id, xids);
      this.#last_change = this.#number;
    }
    // Excluded transactions that this snapshot sees are forgotten, because no later read reports their changes.
    for (const xid of this.#left_out) if (BigInt(xid) < parseXmin(snapshot)) this.#left_out.delete(xid);
    if (this.#changed.size > CHANGES_MAX) this.#reset();
    if (progress !== this.#progress_text) {
      this.#progress_text = progress;
      this.#progress = progress === null ? [] : (JSON.parse(progress) as PositionColumns[]).map(toPosition);
    }
    return this.#current();
  }

  #current(): ChangeSnapshot {
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

  /** Creates new maps, because earlier snapshots still use the old ones. */
  #reset(): void {
    this.#changed = new Map();
    this.#changed_by_others = new Map();
    this.#known_since = this.#number;
  }
}

type PreparedChangesStatement = { name: string; text: string; values: unknown[] };
type ChangesConnection = { query(statement: PreparedChangesStatement): Promise<{ rows: unknown[] }> };

function parseXmin(snapshot: string): bigint {
  return BigInt(snapshot.split(':')[0]!);
}

/** Recent changes. The snapshot's progress includes everything that was durable in the log before the instant `as_of`. */
export type RecentChanges = { readonly snapshot: ChangeSnapshot; readonly as_of: string };

/**
 * Callback of a caller, because a promise for each of thousands of calls per second would be expensive. It gets null if the read failed,
 * and must not throw.
 */
type ChangesCallback = (recent: RecentChanges | null) => void;
type RecentQuery = { readonly log: EventLog; readonly now: Date };

/** Changes with the time of their read. `writes` is the number of this process's own writes before the read began. */
type DatedChanges = RecentChanges & { readonly began_ms: number; readonly writes: number };
type LogFreshness = { readonly as_of: string; readonly read_ms: number };

class ChangeFeed {
  readonly #database: Database;
  readonly #own: OwnWrites;
  readonly #tracker = new ChangeTracker();
  readonly #reads = new BatchLoader<void, ChangeSnapshot>(
    async (callers) => {
      const snapshot = await this.#readNext();
      return callers.map(() => snapshot);
    },
    { restMax_ms: REST_MS },
  );
  #recent: DatedChanges | null = null;
  #waiting: ChangesCallback[] = [];
  /** Query of the latest caller. Its `now` is the upper bound of the freshness that is read next. */
  #query: RecentQuery | null = null;
  #isRenewing = false;
  #freshness: LogFreshness | null = null;
  #reading_freshness: Promise<LogFreshness> | null = null;

  constructor(database: Database) {
    this.#database = database;
    this.#own = getOwnWrites(readUrl(database));
  }

  leaveOut(xid: string): void {
    this.#tracker.leaveOut(xid);
  }

  read(): Promise<ChangeSnapshot> {
    return this.#reads.load();
  }

  async #readNext(): Promise<ChangeSnapshot> {
    const { client } = this.#database;
    const connection = (await client.acquireConnection()) as ChangesConnection;
    try {
      const snapshot = await this.#tracker.next(connection);
      await getUsageFeed(this.#database)?.feedUntil(snapshot.progress);
      return snapshot;
    } finally {
      await client.releaseConnection(connection);
    }
  }

  request(query: RecentQuery, callback: ChangesCallback): void {
    this.#query = query;
    const recent = this.#recent !== null && this.#isRecent(this.#recent) ? this.#recent : null;
    if (recent === null) this.#waiting.push(callback);
    if (!this.#isRenewing && (recent === null || performance.now() - recent.began_ms > RENEWED_MS))
      void runUnrecorded(() => runAsSystem(() => this.#renew()));
    if (recent !== null) callback(recent);
  }

  /** Whether a snapshot is at most 50 ms old, and this process has written nothing since its read began. */
  #isRecent({ began_ms, writes }: DatedChanges): boolean {
    return performance.now() - began_ms < RECENT_MS && writes === this.#own.count;
  }

  async #renew(): Promise<void> {
    this.#isRenewing = true;
    do {
      let callers: ChangesCallback[] = [];
      let recent: DatedChanges | null = null;
      try {
        // `as_of` is read first, so that it is never later than the snapshot.
        const { as_of } = await this.#loadFreshness(this.#query!);
        const [began_ms, writes] = [performance.now(), this.#own.count];
        callers = this.#waiting.splice(0);
        recent = { snapshot: await this.read(), as_of, began_ms, writes };
      } catch {
        // The callers get null and read without the cache; that read reports the failure.
      }
      // Callers that arrived during the read also get its failure or, if it is still recent, its snapshot.
      if (recent === null || this.#isRecent(recent)) callers = callers.concat(this.#waiting.splice(0));
      this.#recent = recent;
      deliver(callers, recent);
      if (this.#waiting.length > 0) await new Promise((resolve) => setTimeout(resolve, REST_MS));
    } while (this.#waiting.length > 0);
    this.#isRenewing = false;
  }

  /** Loads the last known freshness, which is renewed in the background. It may be earlier than the true value, never later. */
  async #loadFreshness({ log, now }: RecentQuery): Promise<LogFreshness> {
    const known = this.#freshness;
    const age_ms = known === null ? Number.POSITIVE_INFINITY : performance.now() - known.read_ms;
    if (age_ms > RECENT_MS) {
      this.#reading_freshness ??= this.#readFreshness(log, now);
      // The failure is ignored here, because callers that wait for the freshness receive it.
      this.#reading_freshness.catch(() => undefined);
    }
    return age_ms <= FRESHNESS_MS ? known! : this.#reading_freshness!;
  }

  async #readFreshness(log: EventLog, now: Date): Promise<LogFreshness> {
    const read_ms = performance.now();
    try {
      const as_of = formatUs(await loadLogFreshness(log, now.getTime()));
      this.#freshness = { as_of, read_ms };
      return this.#freshness;
    } finally {
      this.#reading_freshness = null;
    }
  }
}

/** Number of callbacks per portion, which takes less than half a millisecond. */
const PORTION = 4;

/**
 * Calls the callbacks in portions, all in one tick of the event loop. Work that a callback defers, as Node's HTTP server does for each
 * answer, runs after the callback's portion, so the first answers do not wait for the last callback.
 */
function deliver(callbacks: readonly ChangesCallback[], recent: RecentChanges | null): void {
  for (let from = 0; from < callbacks.length; from += PORTION) {
    const portion = callbacks.slice(from, from + PORTION);
    setImmediate(() => {
      for (const callback of portion) callback(recent);
    });
  }
}

const changeFeeds = new WeakMap<Database, ChangeFeed>();

/** Returns the change feed of a process; `database` is its pool. */
function getChangeFeed(database: Database): ChangeFeed {
  let feed = changeFeeds.get(database);
  if (feed === undefined) changeFeeds.set(database, (feed = new ChangeFeed(database)));
  return feed;
}

/** Returns a snapshot that sees everything that was committed before the call. */
export function readChanges(database: Database): Promise<ChangeSnapshot> {
  return getChangeFeed(database).read();
}

/** Passes a snapshot of the last 50 ms to `callback`; it sees all writes of this process except slices. `callback` must not throw. */
export function requestRecentChanges(
  { postgres, log }: Pick<Stores, 'postgres' | 'log'>,
  now: Date,
  callback: ChangesCallback,
): void {
  getChangeFeed(postgres).request({ log, now }, callback);
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
