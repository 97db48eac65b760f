import { type SystemEvent, systemEventShape } from '../../../core/platform/system-event/record.ts';
import { ScopedModel } from './model.ts';

export interface SystemEventModel extends SystemEvent {}

export class SystemEventModel extends ScopedModel {
  static override tableName = 'system_events';
  static override recordName = 'system event';
  /** The event reports a change itself. */
  static override isAudited = false as const;
  static override record = systemEventShape;
  /** Orders the events of one record. */
  declare sequence: string;
}
