/**
 * Audit of the corrections: what Postgres calls applied stands in ClickHouse, with the same number, action and event, and at
 * the event's place; and nothing stands there that was not asked for or did not take effect. Only a correction that is in
 * progress is known to one of them alone. That the usage rows hold their effect is for the recount to say.
 */
import { byId } from '../../core/by-id.ts';
import { identityHashOf } from '../../core/event/identity.ts';
import { groupBy } from '../../core/group-by.ts';
import {
  type CorrectionRow,
  correctionsPage,
  newestCorrections,
  type RequestedCorrection,
  type StoredCorrection,
  statesOf,
  storedCorrections,
} from '../../storage/audit/corrections.ts';
import { findIdentities } from '../../storage/events/identities.ts';
import { nextOffsets } from '../../storage/progress/slice-state.ts';
import { readProgress } from '../../storage/progress/slices.ts';
import type { Stores } from '../../storage/stores.ts';
import { type FindingKind, type Found, idText } from './findings.ts';

type AuditStores = Pick<Stores, 'postgres' | 'clickhouse'>;

const PAGE = 2_000;
/** Where there are more, most of them are nobody's. */
const STORED_MAX = 5 * PAGE;
const LAST = (1n << 64n) - 1n;

/** All of them; or, with `newest`, so many. */
export async function auditCorrections(
  stores: AuditStores,
  found: Found,
  { newest }: { newest?: number } = {},
): Promise<{ corrections: number }> {
  let after = newest === undefined ? 0n : await newestCorrections(stores.postgres, newest);
  for (let corrections = 0; ; ) {
    // Read before the rows: what was planned by then is settled before anybody says that it has passed.
    const progress = await readProgress(stores.postgres);
    const requested = await correctionsPage(stores.postgres, { after, limit: PAGE });
    const isLast = requested.length < PAGE;
    const until = isLast ? LAST : BigInt(requested.at(-1)!.id);
    const stored = await storedCorrections(stores.clickhouse, { after, until, limit: STORED_MAX });
    const passed = nextOffsets(progress);
    await compare(stores, { requested, stored, passed }, found);
    corrections += requested.length;
    if (isLast) return { corrections };
    after = until;
  }
}

type Compared = {
  readonly requested: readonly RequestedCorrection[];
  readonly stored: readonly StoredCorrection[];
  readonly passed: ReadonlyMap<number, bigint>;
};

async function compare(stores: AuditStores, { requested, stored, passed }: Compared, found: Found): Promise<void> {
  const written = byId(stored);
  const known = byId(requested);
  const tell = (kind: FindingKind, row: CorrectionRow, what: string) =>
    found({ kind, count: 1, what: `${what}: ${row.action} ${row.id} of ${idText(row)}` });
  for (const row of requested) {
    if (row.state === 'applied' && !written.has(row.id))
      tell('correction_missing', row, 'a correction is called applied and is not there');
  }
  for (const row of stored) {
    const asked = known.get(row.id);
    if (asked && saidBy(asked) !== saidBy(row))
      tell('correction_differs', row, `what was asked for is another (${asked.action} of ${idText(asked)})`);
  }
  await tellUnapplied(stores, { stored, known, passed }, tell);
  await tellMisplaced(stores, stored, tell);
}

type Tell = (kind: FindingKind, row: CorrectionRow, what: string) => void;

/** What stands in ClickHouse and was not applied when Postgres was read: perhaps it is by now, or is being applied. */
async function tellUnapplied(
  { postgres }: AuditStores,
  { stored, known, passed }: Pick<Compared, 'stored' | 'passed'> & { known: ReadonlyMap<string, RequestedCorrection> },
  tell: Tell,
): Promise<void> {
  const open = stored.filter(({ id }) => known.get(id)?.state !== 'applied');
  if (open.length === 0) return;
  const states = await statesOf(
    postgres,
    open.map(({ id }) => id),
  );
  for (const row of open) {
    const state = states.get(row.id);
    if (state === 'applied') continue;
    // Its message has not passed: its slice is in progress.
    if (state === 'requested' && BigInt(row.offset) >= (passed.get(row.partition) ?? 0n)) continue;
    tell('correction_extra', row, `a correction stands there that ${state ? `is ${state}` : 'nobody asked for'}`);
  }
}

/** A void is looked for by its id alone; what replaces an event stands at the event's place. */
async function tellMisplaced(
  { clickhouse }: AuditStores,
  stored: readonly StoredCorrection[],
  tell: Tell,
): Promise<void> {
  const owners = groupBy(await findIdentities(clickhouse, [...new Set(stored.map(identityHashOf))]), idText);
  for (const row of stored) {
    const places = owners.get(idText(row)) ?? [];
    const isThere = places.some(
      ({ offset, position }) => offset === Number(row.event_offset) && position === row.event_position,
    );
    if (!isThere) {
      const where = `${row.event_offset}.${row.event_position}`;
      tell('correction_differs', row, `its event does not stand at offset ${where}, where it says`);
    }
  }
}

function saidBy({ action, ...row }: CorrectionRow): string {
  return `${action} ${idText(row)}`;
}
