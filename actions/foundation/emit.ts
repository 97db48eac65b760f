/**
 * Emits the system event of a change in the same transaction, so that the event exists if and only if the change does. Publishers
 * (webhooks, Kafka) find it after the commit (docs/rules/webhooks.md, "Emitted with the change").
 */
import type { Scope } from '../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../core/foundation/stamp.ts';
import { buildEventBody } from '../../core/platform/system-event/body.ts';
import { SYSTEM_EVENTS, type SystemEventName } from '../../core/platform/system-event/catalogue.ts';
import { newId } from '../../storage/foundation/new-id.ts';
import type { Transaction } from '../../storage/foundation/stores.ts';
import { SystemEventModel } from '../../storage/models/foundation/system-event.ts';

/** Author of a change: a user, or the scheduler, which has no user id. */
export type ChangeAuthor = Author | Pick<Author, 'now'>;
type SystemEventChange = {
  readonly record: Scope & { readonly id: string };
  readonly by: ChangeAuthor;
  /** Further fields of the event. */
  readonly also?: Readonly<Record<string, unknown>>;
};

/** Emits an event. `record` is the record after the change. Returns the id of the event. */
export async function emit(
  transaction: Transaction,
  name: SystemEventName,
  change: SystemEventChange,
): Promise<string> {
  const event = buildEvent(name, change);
  await SystemEventModel.append(change.record, event, { database: transaction });
  return event.id;
}

/** Emits an event for several records of one environment, in their order, in one statement. */
export async function emitAll(
  transaction: Transaction,
  name: SystemEventName,
  { scope, records, by }: { scope: Scope; records: readonly SystemEventChange['record'][]; by: ChangeAuthor },
): Promise<void> {
  const events = records.map((record) => buildEvent(name, { record, by }));
  await SystemEventModel.appendAll(scope, events, { database: transaction });
}

function buildEvent(name: SystemEventName, { record, by, also }: SystemEventChange) {
  const id = newId('system_event', by.now.getTime());
  const user_id = 'user_id' in by ? by.user_id : '';
  return {
    id,
    event_name: name,
    entity_type: SYSTEM_EVENTS[name].entity_type,
    entity_id: record.id,
    user_id,
    payload: buildEventBody({ id, name, record, also, now: by.now }),
    ...createdBy({ user_id, now: by.now }),
  };
}

/** Whether an event of this name was emitted for the record before. */
export async function wasEmitted(
  transaction: Transaction,
  event_name: SystemEventName,
  record: SystemEventChange['record'],
): Promise<boolean> {
  const [emitted] = await SystemEventModel.in(record, transaction)
    .select('id')
    .where({ event_name, entity_id: record.id })
    .limit(1);
  return emitted !== undefined;
}
