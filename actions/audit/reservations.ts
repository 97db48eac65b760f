/** Audit of reservations: pools say what is held, and what was committed has become so much (docs/decisions/0023-reservations.md). */
import { type ReservationSums, reservationFaults, reservationSums } from '../../storage/audit/reservations.ts';
import type { Stores } from '../../storage/stores.ts';
import type { Found } from './findings.ts';

const FAULTS_MAX = 1_000;

export async function auditReservations(
  { postgres }: Pick<Stores, 'postgres'>,
  found: Found,
): Promise<ReservationSums> {
  for (const { kind, id, stated, found: rows } of await reservationFaults(postgres, FAULTS_MAX))
    found({ kind, count: 1, what: `${id} says ${stated}, and the rows ${rows}` });
  return reservationSums(postgres);
}
