import { type SystemEvent, systemEventShape } from '../../../core/platform/system-event/record.ts';
import { ScopedModel } from './model.ts';

export interface SystemEventModel extends SystemEvent {}

export class SystemEventModel extends ScopedModel {
  static override tableName = 'system_events';
  static override recordName = 'system event';
  /** Not audited: the event itself reports a change. */
  static override isAudited = false as const;
  static override record = systemEventShape;
  /** Sequence number that orders the events of one record. */
  declare sequence: string;
}
