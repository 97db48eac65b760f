/**
 * The single place where a new or changed meter is told to whoever counts events, inside the transaction that changes it.
 * The barrier in the event log is appended here.
 */
import type { Scope } from '../core/scope.ts';
import type { MeterModel } from '../storage/models/meter.ts';
import type { Database } from '../storage/stores.ts';

export async function announceMeterChange(_transaction: Database, _scope: Scope, _meter: MeterModel): Promise<void> {}
