/**
 * Releases or charges expired reservations, and sends the events of commits whose process crashed before that
 * (docs/rules/reservations.md, "How it ends").
 */
import type { Scope } from '../../core/foundation/scope.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { ReservationModel } from '../../storage/models/reservations/reservation.ts';
import type { DueEnvironments, DueRecord } from '../../storage/queue/due-billing.ts';
import { listExpiredReservations, listUnsentReservations } from '../../storage/queue/due-reservations.ts';
import { runBatches } from '../foundation/batch-loop.ts';
import { waitForLog } from '../metering/events/wait-for-log.ts';
import { expireReservation } from './end-reservation.ts';
import { sendCommitted } from './send-committed.ts';

type EndFaults = { id: string; error: unknown }[];
/** Report of ended reservations. `uncharged` lists those that ended without the requested charge, with the reason. */
type EndReservationsReport = { ended: number; sent: number; failed: EndFaults; uncharged: EndFaults };
const WORKERS = 8;
/** Maximum wait until events are counted. It is longer than the lag of a running pipeline. */
const COUNTED_WITHIN_MS = 60_000;

export async function endDueReservations(
  stores: Stores,
  { now, only }: { now: Date } & DueEnvironments,
): Promise<EndReservationsReport> {
  const report: EndReservationsReport = { ended: 0, sent: 0, failed: [], uncharged: [] };
  const { postgres } = stores;
  const doing =
    (count: 'ended' | 'sent', work: (scope: Scope, id: string) => Promise<unknown>) => async (due: DueRecord) => {
      const { id, ...scope } = due;
      try {
        await work(scope, id);
        report[count] += 1;
        return true;
      } catch (error) {
        report.failed.push({ id, error });
        return false;
      }
    };
  await runBatches({
    next: (left) => listExpiredReservations(postgres, { now, left, only }),
    act: doing('ended', async (scope, id) => {
      const { refusal } = await expireReservation(stores, scope, { id, author: { user_id: '', now } });
      if (refusal) report.uncharged.push({ id, error: refusal });
    }),
    workers: WORKERS,
  });
  await runBatches({
    next: (left) => listUnsentReservations(postgres, { left, only }),
    act: doing('sent', async (scope, id) =>
      sendCommitted(stores, await ReservationModel.fetch(scope, id, { database: postgres })),
    ),
    workers: WORKERS,
  });
  // In an environment with a test clock, a period may end at this instant. The charged usage must be counted before, so that its invoice
  // contains it.
  if (only && report.ended + report.sent > 0) await waitUntilCounted(stores, only);
  return report;
}

function waitUntilCounted(stores: Stores, scope: Scope): Promise<void> {
  const signal = AbortSignal.timeout(COUNTED_WITHIN_MS);
  return waitForLog(stores, scope, { signal, isWanted: async () => true });
}
