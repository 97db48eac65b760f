/** Audit of reservations: pools say what is held, and what was committed has become so much (docs/decisions/0023-reservations.md). */
import {
  type ReservationFault,
  type ReservationSums,
  reservationFaults,
  reservationSums,
  someReservations,
} from '../../storage/audit/reservations.ts';
import type { Stores } from '../../storage/stores.ts';
import type { Found } from './findings.ts';

const FAULTS_MAX = 1_000;

const SAMPLE = 200;

export async function auditReservations(
  { postgres }: Pick<Stores, 'postgres'>,
  found: Found,
): Promise<ReservationSums> {
  for (const fault of await reservationFaults(postgres, { ids: null, limit: FAULTS_MAX })) found(findingOf(fault));
  return reservationSums(postgres);
}

/** Of some, and of their pools, all the time. */
export async function sampleReservations({ postgres }: Pick<Stores, 'postgres'>, found: Found): Promise<void> {
  const ids = await someReservations(postgres, SAMPLE);
  for (const fault of await reservationFaults(postgres, { ids, limit: FAULTS_MAX })) found(findingOf(fault));
}

function findingOf({ kind, id, stated, found }: ReservationFault) {
  return { kind, count: 1, what: `${id} says ${stated}, and the rows ${found}` };
}
